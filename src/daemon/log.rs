//! The daemon's log: to stderr (under systemd: the journal) or to one file a day.

use anyhow::Context as _;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::settings::{Log, LogFormat};

/// Changes the filter of a running daemon.
pub struct LevelSwitch(reload::Handle<EnvFilter, Registry>);

impl LevelSwitch {
    /// Takes `level` from now on.
    ///
    /// # Errors
    /// When it is no filter.
    pub fn set(&self, level: &str) -> anyhow::Result<()> {
        self.0.reload(filter(level)?).context("the log is gone")
    }
}

/// Starts the log.
///
/// # Errors
/// When the filter is none, or the directory cannot be written.
pub fn start(log: &Log) -> anyhow::Result<LevelSwitch> {
    let (filter, handle) = reload::Layer::new(filter(&log.level)?);
    let subscriber = tracing_subscriber::registry().with(filter);
    let layer: Box<dyn Layer<_> + Send + Sync> = match (&log.directory, log.format) {
        (None, LogFormat::Text) => fmt::layer().with_writer(std::io::stderr).with_ansi(false).boxed(),
        (None, LogFormat::Json) => fmt::layer().json().with_writer(std::io::stderr).boxed(),
        (Some(directory), format) => {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("log.directory {}", directory.display()))?;
            let files = RollingFileAppender::builder()
                .rotation(Rotation::DAILY)
                .filename_prefix("daemon")
                .filename_suffix("log")
                .max_log_files(log.files_max)
                .build(directory)
                .with_context(|| format!("log.directory {}", directory.display()))?;
            let files = std::sync::Mutex::new(files);
            match format {
                LogFormat::Text => fmt::layer().with_ansi(false).with_writer(files).boxed(),
                LogFormat::Json => fmt::layer().json().with_writer(files).boxed(),
            }
        }
    };
    subscriber.with(layer).try_init().context("the log was started twice")?;
    Ok(LevelSwitch(handle))
}

fn filter(level: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(level).with_context(|| {
        format!("log.level: {level:?} is no filter; write info, or info,ringleader::store=debug")
    })
}
