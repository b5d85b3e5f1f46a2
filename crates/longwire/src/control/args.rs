//! What the command line says of the control API.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use longwire_capture::open;

use super::address::Address;
use super::guard::{Files, Tokens};
use crate::Error;

/// The control API of a run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Control")]
pub struct ControlArgs {
    /// Listen for the control API at a Unix socket that only its owner may
    /// open, or on TCP with a token, as in tcp:127.0.0.1:9470; may be repeated
    #[arg(long, value_name = "PATH|tcp:ADDR:PORT")]
    pub control: Vec<Address>,

    /// The token that whoever asks over TCP must say: the first line of FILE,
    /// at least 16 characters, in a file that only its owner may read
    #[arg(long, value_name = "FILE", requires = "control")]
    pub control_token_file: Option<PathBuf>,

    /// Another token, with which things may be read and nothing be changed
    #[arg(long, value_name = "FILE", requires = "control")]
    pub control_read_token_file: Option<PathBuf>,

    /// The directory from which changes may read files that models name, where
    /// their relative paths begin; without it, changes over TCP read none, and
    /// those from a Unix socket any that this run may read
    #[arg(long, value_name = "DIR", requires = "control")]
    pub control_files: Option<PathBuf>,

    /// How many requests a second are taken, of all connections together; as
    /// many may come at once
    #[arg(
        long,
        value_name = "N",
        default_value_t = LIMIT,
        requires = "control",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub control_limit: u32,

    /// What /metrics tells unless a request says: sums of all links, or each
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value_t,
        requires = "control"
    )]
    pub metrics_links: Detail,
}

/// Requests a second unless it is said.
const LIMIT: u32 = 10_000;

/// How links are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Detail {
    /// All together
    #[default]
    Sum,
    /// Each by its name
    Each,
}

impl Default for ControlArgs {
    fn default() -> ControlArgs {
        ControlArgs {
            control: Vec::new(),
            control_token_file: None,
            control_read_token_file: None,
            control_files: None,
            control_limit: LIMIT,
            metrics_links: Detail::default(),
        }
    }
}

impl ControlArgs {
    /// Whether there is to be a control API.
    pub fn is_given(&self) -> bool {
        !self.control.is_empty()
    }

    /// The files that changes may name.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub(super) fn files(&self) -> Result<Files, Error> {
        let opened = Files::beneath(self.control_files.as_deref());
        opened.map_err(|source| Error::File {
            path: self.control_files.clone().unwrap_or_default(),
            action: "--control-files: cannot be opened as a directory, for which Linux 5.6 is needed",
            source,
        })
    }

    /// The tokens, read from their files.
    ///
    /// # Errors
    /// If a file cannot be read or holds no token, others may read it, or TCP
    /// is asked for without any.
    pub(super) fn tokens(&self) -> Result<Tokens, Error> {
        let token = |file: &Option<PathBuf>| file.as_deref().map(token).transpose();
        let tokens = Tokens {
            full: token(&self.control_token_file)?,
            read: token(&self.control_read_token_file)?,
        };
        let tcp = |address: &&Address| matches!(address, Address::Tcp(_));
        if let Some(address) = self.control.iter().find(tcp)
            && tokens.is_empty()
        {
            return Err(Error::Usage(format!(
                "--control {address}: over TCP whoever can reach the port could change the run, \
                 so a token is needed: make one with `(umask 077; openssl rand -hex 32 > FILE)` \
                 and add --control-token-file FILE, or --control-read-token-file FILE to let \
                 it be read only; or use a Unix socket, as in --control /run/longwire/a.sock"
            )));
        }
        if tokens.full.is_some() && tokens.full == tokens.read {
            return Err(Error::Usage(
                "--control-read-token-file: it holds the same token as --control-token-file, \
                 with which everything may be changed; make another"
                    .to_owned(),
            ));
        }
        Ok(tokens)
    }
}

/// The fewest and the most characters of a token.
const TOKEN_LENGTHS: std::ops::RangeInclusive<usize> = 16..=4096;

/// The token in the first line of a file.
pub(crate) fn token(path: &Path) -> Result<Vec<u8>, Error> {
    let refuse = |why: String| Err(Error::Usage(format!("{}: {why}", path.display())));
    let failed = |source: io::Error| Error::File {
        path: path.to_owned(),
        action: "cannot read the token",
        source,
    };
    let file = open::to_read(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return refuse(format!(
            "its mode is {mode:o}, so others than its owner may read the token; \
             `chmod 600` it, and make a new token if others are on this machine"
        ));
    }
    let mut line = Vec::new();
    let most = *TOKEN_LENGTHS.end() as u64 + 2;
    let read = BufReader::new(file.take(most)).read_until(b'\n', &mut line);
    read.map_err(failed)?;
    let token = line.trim_ascii_end().to_vec();
    if !TOKEN_LENGTHS.contains(&token.len()) {
        return refuse(format!(
            "its first line has {} characters; a token has {} to {}, as from \
             `openssl rand -hex 32`",
            token.len(),
            TOKEN_LENGTHS.start(),
            TOKEN_LENGTHS.end()
        ));
    }
    if !token.iter().all(u8::is_ascii_graphic) {
        return refuse(
            "its first line has characters that a header cannot carry; use letters, digits \
             and signs without spaces, as from `openssl rand -hex 32`"
                .to_owned(),
        );
    }
    Ok(token)
}
