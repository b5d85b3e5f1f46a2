//! The configuration of a control API.

use std::path::PathBuf;

use crate::Address;
use crate::error::ControlError;
use crate::guard::{Files, Tokens};
use crate::token::read_token;
use crate::view_config::{Judge, ViewConfig};
use longwire_runtime::FileAccess;

/// Requests a second unless the configuration says otherwise.
pub const LIMIT_DEFAULT: u32 = 10_000;

/// A control API: addresses, tokens and limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses at which it listens. Without any there is no control API.
    pub addresses: Vec<Address>,
    /// The file of the token with which everything may be read and changed.
    pub token_file: Option<PathBuf>,
    /// The file of a token with which everything may be read.
    pub read_token_file: Option<PathBuf>,
    /// The directory of the files that changes may name. Without it, changes over TCP
    /// name none, and those from a Unix socket these of `access`.
    pub files: Option<PathBuf>,
    /// The files that changes from a Unix socket may name: its owner could start such a
    /// process.
    pub access: FileAccess,
    /// Requests a second, of all connections together; as many may come at once.
    pub limit: u32,
    /// The detail of /metrics for requests that ask for none.
    pub metrics: Detail,
    /// The live view, if there is one.
    pub view: Option<ViewConfig>,
    /// Judges the run for clients; without it, they receive no verdict.
    pub judge: Option<Judge>,
}

/// The detail in which /metrics shows links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The sums of all links.
    #[default]
    Sum,
    /// Each link by its name.
    Each,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            addresses: Vec::new(),
            token_file: None,
            read_token_file: None,
            files: None,
            access: FileAccess::Any,
            limit: LIMIT_DEFAULT,
            metrics: Detail::default(),
            view: None,
            judge: None,
        }
    }
}

impl Config {
    /// The files that changes may name.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub(crate) fn files(&self) -> Result<Files, ControlError> {
        let opened = Files::beneath(self.files.as_deref(), self.access.clone());
        opened.map_err(|source| ControlError::File {
            path: self.files.clone().unwrap_or_default(),
            action: "--control-files: cannot be opened as a directory, for which Linux 5.6 is needed",
            source,
        })
    }

    /// The tokens, read from their files.
    ///
    /// # Errors
    /// If a file cannot be read or holds no token, others may read it, or TCP
    /// is asked for without any.
    pub(crate) fn tokens(&self) -> Result<Tokens, ControlError> {
        let token = |file: &Option<PathBuf>| file.as_deref().map(read_token).transpose();
        let (full, read) = (token(&self.token_file)?, token(&self.read_token_file)?);
        let same = full.is_some() && full == read;
        let tokens = Tokens::of(full, read);
        let tcp = |address: &&Address| matches!(address, Address::Tcp(_));
        if let Some(address) = self.addresses.iter().find(tcp)
            && tokens.is_empty()
        {
            return Err(ControlError::Usage(format!(
                "--control {address}: over TCP any program that reaches the port could change the run, \
                 so a token is needed: make one with `(umask 077; openssl rand -hex 32 > FILE)` \
                 and add --control-token-file FILE, or --control-read-token-file FILE to let \
                 it be read only; or use a Unix socket, as in --control /run/longwire/a.sock"
            )));
        }
        if same {
            return Err(ControlError::Usage(
                "--control-read-token-file: it holds the same token as --control-token-file, \
                 with which everything may be changed; make another"
                    .to_owned(),
            ));
        }
        Ok(tokens)
    }
}
