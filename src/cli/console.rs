//! What the person sees: results on stdout, everything else on stderr.

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A stream that several parts of a command write to.
pub type Sink = Arc<Mutex<dyn Write + Send>>;

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// One line that changes, for a person who watches.
    Spinner,
    /// A line each time something changed, for a log.
    Lines,
    Quiet,
}

/// The two output streams, and the person's answers.
#[derive(Clone)]
pub struct Console {
    out: Sink,
    err: Sink,
    look: Look,
    /// Whether someone sits there who can answer.
    interactive: bool,
}

impl Console {
    /// The process's own streams.
    #[must_use]
    pub fn of_process(quiet: bool) -> Self {
        let seen = io::stderr().is_terminal();
        let look = match (quiet, seen) {
            (true, _) => Look::Quiet,
            (false, true) => Look::Spinner,
            (false, false) => Look::Lines,
        };
        Self {
            out: Arc::new(Mutex::new(io::stdout())),
            err: Arc::new(Mutex::new(io::stderr())),
            look,
            interactive: io::stdin().is_terminal() && seen,
        }
    }

    /// Streams that a test reads; nobody answers.
    #[cfg(test)]
    pub fn captured(out: Sink, err: Sink, look: Look) -> Self {
        Self { out, err, look, interactive: false }
    }

    /// A line of the command's result.
    pub fn print(&self, line: impl Display) -> io::Result<()> {
        writeln!(locked(&self.out), "{line}")
    }

    /// Result text as it is, without a line's end.
    pub fn print_raw(&self, text: &str) -> io::Result<()> {
        let mut out = locked(&self.out);
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// A line beside the result: what happened, what to type next. Left out with `--quiet`.
    pub fn note(&self, line: impl Display) {
        if self.look != Look::Quiet {
            self.complain(line);
        }
    }

    /// A line that is shown even with `--quiet`: errors and warnings.
    pub fn complain(&self, line: impl Display) {
        // Nothing better can be done where stderr is closed.
        let _ = writeln!(locked(&self.err), "{line}");
    }

    /// What the server's warnings are told to.
    pub fn warner(&self) -> crate::client::OnWarning {
        let err = Arc::clone(&self.err);
        Arc::new(move |text| {
            let _ = writeln!(locked(&err), "warning: {text}");
        })
    }

    /// Starts showing the progress of one wait.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let spinner = (self.look == Look::Spinner).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {msg} ({elapsed})").expect("the template is valid"),
            );
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Progress { console: self.clone(), spinner, last: String::new() }
    }

    /// Asks, and takes anything but yes for no. Nothing where nobody can answer.
    pub fn confirm(&self, question: &str) -> io::Result<Option<bool>> {
        if !self.interactive {
            return Ok(None);
        }
        {
            let mut err = locked(&self.err);
            write!(err, "{question} [y/N] ")?;
            err.flush()?;
        }
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok(Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")))
    }
}

/// The progress of one wait, shown until it is dropped.
pub struct Progress {
    console: Console,
    spinner: Option<ProgressBar>,
    last: String,
}

impl Progress {
    /// Says how things stand; the same again is not repeated.
    pub fn say(&mut self, how: String) {
        if how == self.last {
            return;
        }
        match &self.spinner {
            Some(spinner) => spinner.set_message(how.clone()),
            None => self.console.note(format_args!("waiting: {how}")),
        }
        self.last = how;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

fn locked(sink: &Sink) -> std::sync::MutexGuard<'_, dyn Write + Send + 'static> {
    sink.lock().unwrap_or_else(PoisonError::into_inner)
}
