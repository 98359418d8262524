//! The terminal modes a client asks for (RFC 4254, section 8), put on a line.
//!
//! What the line does not know (and speeds, which mean nothing on a pseudo terminal) is left out.

use std::io;
use std::os::fd::AsFd;

use russh::Pty;
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios,
};

/// A mode's place in the line's settings.
enum Mode {
    Input(InputModes),
    Output(OutputModes),
    Control(ControlModes),
    Local(LocalModes),
    Character(SpecialCodeIndex),
}

/// RFC 4254's way to say that a character is switched off, and Linux's.
const NO_CHARACTER: (u32, u8) = (255, 0);

/// Sets what the client asked for.
pub(super) fn set(line: impl AsFd, modes: &[(Pty, u32)]) -> io::Result<()> {
    let mut settings = rustix::termios::tcgetattr(&line)?;
    for (mode, value) in modes {
        if let Some(mode) = place(*mode) {
            change(&mut settings, &mode, *value);
        }
    }
    Ok(rustix::termios::tcsetattr(&line, OptionalActions::Now, &settings)?)
}

fn change(settings: &mut Termios, mode: &Mode, value: u32) {
    let on = value != 0;
    match mode {
        Mode::Input(flag) => settings.input_modes.set(*flag, on),
        Mode::Output(flag) => settings.output_modes.set(*flag, on),
        Mode::Control(flag) => settings.control_modes.set(*flag, on),
        Mode::Local(flag) => settings.local_modes.set(*flag, on),
        Mode::Character(index) => {
            let (off, disabled) = NO_CHARACTER;
            settings.special_codes[*index] =
                if value == off { disabled } else { u8::try_from(value).unwrap_or(disabled) };
        }
    }
}

/// None for what Linux's lines do not have.
fn place(mode: Pty) -> Option<Mode> {
    character(mode)
        .map(Mode::Character)
        .or_else(|| input(mode).map(Mode::Input))
        .or_else(|| local(mode).map(Mode::Local))
        .or_else(|| output(mode).map(Mode::Output))
        .or_else(|| control(mode).map(Mode::Control))
}

fn character(mode: Pty) -> Option<SpecialCodeIndex> {
    Some(match mode {
        Pty::VINTR => SpecialCodeIndex::VINTR,
        Pty::VQUIT => SpecialCodeIndex::VQUIT,
        Pty::VERASE => SpecialCodeIndex::VERASE,
        Pty::VKILL => SpecialCodeIndex::VKILL,
        Pty::VEOF => SpecialCodeIndex::VEOF,
        Pty::VEOL => SpecialCodeIndex::VEOL,
        Pty::VEOL2 => SpecialCodeIndex::VEOL2,
        Pty::VSTART => SpecialCodeIndex::VSTART,
        Pty::VSTOP => SpecialCodeIndex::VSTOP,
        Pty::VSUSP => SpecialCodeIndex::VSUSP,
        Pty::VREPRINT => SpecialCodeIndex::VREPRINT,
        Pty::VWERASE => SpecialCodeIndex::VWERASE,
        Pty::VLNEXT => SpecialCodeIndex::VLNEXT,
        Pty::VDISCARD => SpecialCodeIndex::VDISCARD,
        _ => return None,
    })
}

fn input(mode: Pty) -> Option<InputModes> {
    Some(match mode {
        Pty::IGNPAR => InputModes::IGNPAR,
        Pty::PARMRK => InputModes::PARMRK,
        Pty::INPCK => InputModes::INPCK,
        Pty::ISTRIP => InputModes::ISTRIP,
        Pty::INLCR => InputModes::INLCR,
        Pty::IGNCR => InputModes::IGNCR,
        Pty::ICRNL => InputModes::ICRNL,
        Pty::IUCLC => InputModes::IUCLC,
        Pty::IXON => InputModes::IXON,
        Pty::IXANY => InputModes::IXANY,
        Pty::IXOFF => InputModes::IXOFF,
        Pty::IMAXBEL => InputModes::IMAXBEL,
        Pty::IUTF8 => InputModes::IUTF8,
        _ => return None,
    })
}

fn local(mode: Pty) -> Option<LocalModes> {
    Some(match mode {
        Pty::ISIG => LocalModes::ISIG,
        Pty::ICANON => LocalModes::ICANON,
        Pty::XCASE => LocalModes::XCASE,
        Pty::ECHO => LocalModes::ECHO,
        Pty::ECHOE => LocalModes::ECHOE,
        Pty::ECHOK => LocalModes::ECHOK,
        Pty::ECHONL => LocalModes::ECHONL,
        Pty::NOFLSH => LocalModes::NOFLSH,
        Pty::TOSTOP => LocalModes::TOSTOP,
        Pty::IEXTEN => LocalModes::IEXTEN,
        Pty::ECHOCTL => LocalModes::ECHOCTL,
        Pty::ECHOKE => LocalModes::ECHOKE,
        Pty::PENDIN => LocalModes::PENDIN,
        _ => return None,
    })
}

fn output(mode: Pty) -> Option<OutputModes> {
    Some(match mode {
        Pty::OPOST => OutputModes::OPOST,
        Pty::OLCUC => OutputModes::OLCUC,
        Pty::ONLCR => OutputModes::ONLCR,
        Pty::OCRNL => OutputModes::OCRNL,
        Pty::ONOCR => OutputModes::ONOCR,
        Pty::ONLRET => OutputModes::ONLRET,
        _ => return None,
    })
}

fn control(mode: Pty) -> Option<ControlModes> {
    Some(match mode {
        Pty::PARENB => ControlModes::PARENB,
        Pty::PARODD => ControlModes::PARODD,
        _ => return None,
    })
}
