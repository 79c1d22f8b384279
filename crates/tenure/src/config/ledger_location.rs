//! What every command that needs a ledger asks for.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::{Configuration, ConfigurationError, Flags, Folders, MergedValues};
use crate::exit;
use crate::failure::Failure;

/// Which ledger: the same for every command.
#[derive(Debug, Clone, Default, Args)]
pub struct LedgerLocation {
    /// Where the ledger is [default: tenure in the XDG state directory]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// The configuration file [default: tenure/config.toml in the XDG configuration directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Where the server of this machine is.
#[derive(Debug, Clone)]
pub struct LocalServerPaths {
    /// Its socket, if it has one.
    pub socket: Option<PathBuf>,
    /// Its ledger. Nothing where the environment does not say where that belongs.
    pub data: Option<PathBuf>,
    /// Where a daemon says what it has to say.
    pub log: Option<PathBuf>,
}

impl LedgerLocation {
    /// Whether the ledger was named on the command line. Hooks know no command line, so they never look for that one.
    pub fn has_data_directory(&self) -> bool {
        self.data.is_some()
    }

    /// The directory of a ledger that is to be read: it must be there.
    pub fn existing_directory(self) -> Result<PathBuf, Failure> {
        let folders = Folders::new(variable);
        let data = self
            .sources(None, &folders)
            .and_then(|sources| Configuration::data_directory(&sources, &folders));
        let data = data.map_err(wrong)?;
        must_be_there(&data)?;
        Ok(data)
    }

    /// Everything that was said about a ledger that is to be changed: it must be there.
    pub fn existing_configuration(self) -> Result<Configuration, Failure> {
        let configuration = self.configuration(None)?;
        must_be_there(&configuration.data)?;
        Ok(configuration)
    }

    /// Everything that was said, with these flags beside the usual ones.
    pub fn configuration(
        self,
        flags: impl IntoIterator<Item = (&'static str, OsString)>,
    ) -> Result<Configuration, Failure> {
        let folders = Folders::new(variable);
        let sources = self.sources(flags, &folders);
        sources.and_then(|sources| Configuration::new(&sources, &folders)).map_err(wrong)
    }

    /// Whether the configuration file says by now that the API takes leases. What the environment said counts for the
    /// start alone.
    pub fn read_api_leases_from_file(&self) -> Result<Option<bool>, ConfigurationError> {
        let folders = Folders::new(variable);
        let only_the_file = std::env::vars_os().filter(|(name, _)| name == "TENURE_CONFIG").collect();
        let flags = Flags { config: self.config.clone(), ..Flags::default() };
        super::read_api_leases(&MergedValues::new(flags, &only_the_file, &folders)?)
    }

    /// Where the server of this machine is. Nothing else of the configuration is looked at: whoever asks has no time.
    pub fn local_server_paths(self) -> Result<LocalServerPaths, ConfigurationError> {
        let folders = Folders::new(variable);
        let sources = self.sources(None, &folders)?;
        let socket = super::network::socket(&sources, &folders)?;
        // Beside the data directory, not in it: a copy of that would bring it along.
        let log =
            folders.state("the log of the daemon", "").ok().map(|state| state.join("tenure-daemon.log"));
        let data = Configuration::data_directory(&sources, &folders).ok();
        Ok(LocalServerPaths { socket: socket.map(|socket| socket.path), data, log })
    }

    fn sources(
        self,
        flags: impl IntoIterator<Item = (&'static str, OsString)>,
        folders: &Folders,
    ) -> Result<MergedValues, ConfigurationError> {
        let data = self.data.map(|data| ("data", data.into_os_string()));
        let values = flags.into_iter().chain(data).collect();
        MergedValues::new(Flags { config: self.config, values }, &std::env::vars_os().collect(), folders)
    }
}

/// A variable of the environment.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn must_be_there(data: &std::path::Path) -> Result<(), Failure> {
    std::fs::read_dir(data).map(|_| ()).map_err(|error| {
        let what = format!("the data directory {} cannot be read", data.display());
        Failure::new(exit::UNAVAILABLE, &what, &error)
            .with_hint("Say where the ledger is with --data, or make one with `tenure serve`.")
    })
}

fn wrong(error: ConfigurationError) -> Failure {
    Failure::new(exit::CONFIGURATION, "the configuration cannot be used", &error)
}
