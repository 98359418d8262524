//! One client's connection: who it is, and what its channels ask for.
//!
//! No callback waits for a program or a client (`valve.rs` says why): they look something up,
//! start a child, or pass something on.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use russh::keys::{Algorithm, PublicKey};
use russh::server::{Auth, ChannelOpenHandle, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId, ChannelOpenFailure, ChannelWriteHalf, Pty, Sig};
use rustix::termios::Winsize;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};

use super::modes;
use super::program::{self, Client, Order, Program};
use super::valve::{Input, Valve};
use crate::agent::accounts::Account;
use crate::agent::login::{self, Variables};
use crate::agent::pass;
use crate::agent::place::Place;
use crate::sys::session::{self, NewTerminal};

const CHANNELS_MAX: usize = 64;
const VARIABLES_MAX: usize = 64;
const VARIABLE_BYTES_MAX: usize = 8 << 10;
const TERM_BYTES_MAX: usize = 64;
/// Signals and resizes that wait for a session; more are dropped.
const ORDERS_MAX: usize = 32;

/// The handler of one connection.
pub(super) struct Connection {
    place: Place,
    valve: Arc<Valve>,
    /// Held until the client has logged in.
    stranger: Option<OwnedSemaphorePermit>,
    sessions: watch::Sender<u32>,
    /// Present once the client has logged in.
    login: Option<LoggedIn>,
    channels: HashMap<ChannelId, State>,
}

/// Counts as one session while it lives.
struct LoggedIn {
    sessions: watch::Sender<u32>,
}

/// What became of a channel.
enum State {
    /// Open; nothing runs yet.
    Prepared(Prepared),
    Running {
        orders: mpsc::Sender<Order>,
        input: Arc<Input>,
    },
}

/// What a client asked for before it starts something.
struct Prepared {
    channel: ChannelWriteHalf<Msg>,
    variables: Variables,
    terminal: Option<WantedTerminal>,
}

struct WantedTerminal {
    term: String,
    size: Winsize,
    modes: Vec<(Pty, u32)>,
}

/// What to start.
enum Wanted<'a> {
    Shell,
    Command(&'a [u8]),
}

impl Connection {
    pub(super) fn new(
        place: Place,
        valve: Arc<Valve>,
        stranger: OwnedSemaphorePermit,
        sessions: watch::Sender<u32>,
    ) -> Self {
        Self { place, valve, stranger: Some(stranger), sessions, login: None, channels: HashMap::new() }
    }

    /// Whether this key lets `user` in, as the member's files say at this moment.
    async fn admit(&self, user: &str, key: &PublicKey, algorithm: &Algorithm) -> Auth {
        let admitted = match login::admits(&self.place, user, key, algorithm).await {
            Ok(()) => return Auth::Accept,
            Err(refusal) => refusal,
        };
        tracing::info!("a login was refused: {admitted}");
        Auth::reject()
    }

    fn start(
        &mut self,
        id: ChannelId,
        wanted: &Wanted<'_>,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        match self.channels.remove(&id) {
            Some(State::Prepared(prepared)) => match self.launch(&prepared, wanted) {
                Ok(program) => {
                    session.channel_success(id)?;
                    let (orders, orders_taken) = mpsc::channel(ORDERS_MAX);
                    let input = Arc::new(Input::new(self.valve.clone()));
                    let (channel, handle) = (prepared.channel, session.handle());
                    let client = Client { channel, handle, input: input.clone(), orders: orders_taken };
                    tokio::spawn(program::serve(program, client));
                    self.channels.insert(id, State::Running { orders, input });
                    Ok(())
                }
                Err(error) => {
                    tracing::warn!(%error, "a session could not be started");
                    self.channels.insert(id, State::Prepared(prepared));
                    session.channel_failure(id)
                }
            },
            Some(running @ State::Running { .. }) => {
                self.channels.insert(id, running);
                session.channel_failure(id)
            }
            None => session.channel_failure(id),
        }
    }

    fn launch(&self, prepared: &Prepared, wanted: &Wanted<'_>) -> io::Result<Program> {
        let account = pass::login_user(&self.place).map_err(io::Error::other)?;
        let account = account.ok_or_else(|| io::Error::other("there is no login user"))?;
        let Some(terminal) = &prepared.terminal else {
            let program = self.program(&account, &prepared.variables, wanted)?;
            return session::spawn(program, &account.user).map(Program::Piped);
        };
        let new = NewTerminal::open(&account.user, login::terminal_group(&self.place))?;
        new.terminal.resize(terminal.size)?;
        modes::set(new.terminal.line(), &terminal.modes)?;
        let mut variables = prepared.variables.clone();
        variables.insert("TERM".to_owned(), terminal.term.clone());
        variables.insert("SSH_TTY".to_owned(), new.terminal.name.to_string_lossy().into_owned());
        let program = self.program(&account, &variables, wanted)?;
        let (child, terminal) = session::spawn_on_terminal(program, &account.user, new)?;
        Ok(Program::OnTerminal(child, terminal))
    }

    fn program(
        &self,
        account: &Account,
        variables: &Variables,
        wanted: &Wanted<'_>,
    ) -> io::Result<session::Program> {
        let environment = login::environment(&self.place, account, variables)?;
        let home = self.place.path(&account.home);
        Ok(match wanted {
            Wanted::Shell => session::Program::login_shell(&account.shell, environment, &home),
            Wanted::Command(command) => {
                session::Program::command(&account.shell, command, environment, &home)
            }
        })
    }

    fn prepared(&mut self, id: ChannelId) -> Option<&mut Prepared> {
        match self.channels.get_mut(&id) {
            Some(State::Prepared(prepared)) => Some(prepared),
            Some(State::Running { .. }) | None => None,
        }
    }

    /// Passes an order on, if something runs there. One too many is dropped, as signals are.
    fn order(&self, id: ChannelId, order: Order) {
        if let Some(State::Running { orders, .. }) = self.channels.get(&id) {
            drop(orders.try_send(order));
        }
    }

    fn input(&self, id: ChannelId) -> Option<&Input> {
        match self.channels.get(&id) {
            Some(State::Running { input, .. }) => Some(input),
            Some(State::Prepared(_)) | None => None,
        }
    }
}

impl Handler for Connection {
    type Error = russh::Error;

    async fn auth_publickey_offered(
        &mut self,
        user: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        Ok(self.admit(user, offer.public_key, offer.algorithm).await)
    }

    // Looked up again: between offer and proof the key may have been taken away.
    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        Ok(self.admit(user, key.public_key, key.algorithm).await)
    }

    async fn auth_succeeded(&mut self, _session: &mut Session) -> Result<(), Self::Error> {
        self.valve.logged_in();
        self.stranger = None;
        self.login = Some(LoggedIn::new(self.sessions.clone()));
        Ok(())
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.channels.retain(|_, state| !state.is_over());
        if self.channels.len() >= CHANNELS_MAX {
            reply.reject(ChannelOpenFailure::ResourceShortage).await;
            return Ok(());
        }
        let id = channel.id();
        // The reading half would buffer what comes, and stop the connection when it is full.
        let (_, channel) = channel.split();
        let prepared = Prepared { channel, variables: Variables::new(), terminal: None };
        self.channels.insert(id, State::Prepared(prepared));
        reply.accept().await;
        Ok(())
    }

    async fn channel_close(&mut self, id: ChannelId, _session: &mut Session) -> Result<(), Self::Error> {
        self.channels.remove(&id);
        Ok(())
    }

    async fn channel_eof(&mut self, id: ChannelId, _session: &mut Session) -> Result<(), Self::Error> {
        if let Some(input) = self.input(id) {
            input.end();
        }
        Ok(())
    }

    async fn data(&mut self, id: ChannelId, data: &[u8], _session: &mut Session) -> Result<(), Self::Error> {
        match self.input(id) {
            Some(input) => input.push(data).map_err(|_overflow| russh::Error::Pending),
            None => Ok(()),
        }
    }

    fn adjust_window(&mut self, _channel: ChannelId, filled_to: u32) -> u32 {
        self.valve.next_window(filled_to)
    }

    async fn pty_request(
        &mut self,
        id: ChannelId,
        term: &str,
        columns: u32,
        rows: u32,
        pixel_width: u32,
        pixel_height: u32,
        modes: &[(Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let is_sane = term.len() <= TERM_BYTES_MAX && term.bytes().all(|byte| byte.is_ascii_graphic());
        match self.prepared(id).filter(|_| is_sane) {
            Some(prepared) => {
                let size = window(columns, rows, pixel_width, pixel_height);
                prepared.terminal =
                    Some(WantedTerminal { term: term.to_owned(), size, modes: modes.to_vec() });
                session.channel_success(id)
            }
            None => session.channel_failure(id),
        }
    }

    async fn window_change_request(
        &mut self,
        id: ChannelId,
        columns: u32,
        rows: u32,
        pixel_width: u32,
        pixel_height: u32,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.order(id, Order::Resize(window(columns, rows, pixel_width, pixel_height)));
        Ok(())
    }

    async fn env_request(
        &mut self,
        id: ChannelId,
        name: &str,
        value: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let is_welcome =
            login::takes_from_client(name) && value.len() <= VARIABLE_BYTES_MAX && !value.contains('\0');
        match self.prepared(id).filter(|prepared| is_welcome && prepared.variables.len() < VARIABLES_MAX) {
            Some(prepared) => {
                prepared.variables.insert(name.to_owned(), value.to_owned());
                session.channel_success(id)
            }
            None => session.channel_failure(id),
        }
    }

    async fn shell_request(&mut self, id: ChannelId, session: &mut Session) -> Result<(), Self::Error> {
        self.start(id, &Wanted::Shell, session)
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.start(id, &Wanted::Command(command), session)
    }

    async fn subsystem_request(
        &mut self,
        id: ChannelId,
        _: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(id)
    }

    async fn x11_request(
        &mut self,
        id: ChannelId,
        _single_connection: bool,
        _protocol: &str,
        _cookie: &str,
        _screen: u32,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(id)
    }

    async fn signal(&mut self, id: ChannelId, name: Sig, _session: &mut Session) -> Result<(), Self::Error> {
        if let Some(signal) = program::signal_of(&name) {
            self.order(id, Order::Signal(signal));
        }
        Ok(())
    }
}

impl State {
    /// Whether the session has ended by itself. russh tells only of channels that clients close.
    fn is_over(&self) -> bool {
        match self {
            Self::Prepared(_) => false,
            Self::Running { orders, .. } => orders.is_closed(),
        }
    }
}

impl LoggedIn {
    fn new(sessions: watch::Sender<u32>) -> Self {
        sessions.send_modify(|count| *count += 1);
        Self { sessions }
    }
}

impl Drop for LoggedIn {
    fn drop(&mut self) {
        self.sessions.send_modify(|count| *count -= 1);
    }
}

fn window(columns: u32, rows: u32, pixel_width: u32, pixel_height: u32) -> Winsize {
    let short = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    Winsize {
        ws_row: short(rows),
        ws_col: short(columns),
        ws_xpixel: short(pixel_width),
        ws_ypixel: short(pixel_height),
    }
}
