//! A model of one part, parsed once and built any number of times.

use alloc::sync::Arc;
use core::cell::RefCell;
use core::fmt;

use crate::loader::{Hook, Loader, Plugin, TakePiece};
use crate::models::{self, Kind};
use crate::prelude::*;
use crate::spec::SpecError;

/// A parsed and checked model, ready to be built. Clones share the model and its file contents.
/// Equality compares the texts.
#[derive(Clone, Debug)]
pub struct ModelSpec<M>(Arc<Parsed<M>>);

#[derive(Debug)]
struct Parsed<M> {
    text: String,
    /// The model, not started; a plugin has no state yet.
    prototype: M,
    /// Warnings about values that are allowed but probably unintended.
    doubts: Vec<String>,
    /// Paths of the files and plugins used.
    files: Vec<String>,
}

impl<M: Clone> ModelSpec<M> {
    /// Parses a model; `loader` provides files and plugins. A plugin is loaded and its parameters
    /// checked; [`ModelSpec::build`] creates its state.
    ///
    /// # Errors
    /// If the text, a file or a plugin is invalid.
    pub fn parse(kind: &Kind<M>, text: &str, loader: &dyn Loader) -> Result<Self, SpecError> {
        let mut doubts = Vec::new();
        let loader = NotingLoader {
            loader,
            paths: RefCell::default(),
        };
        let model = kind.parse_noting(text, &loader, &mut doubts)?;
        Ok(ModelSpec(Arc::new(Parsed {
            text: text.trim().to_string(),
            // Clones have no plugin state.
            prototype: model.clone(),
            doubts,
            files: loader.paths.into_inner(),
        })))
    }

    /// Returns the text as written.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns warnings about values that are allowed but probably unintended.
    pub fn doubts(&self) -> &[String] {
        &self.0.doubts
    }

    /// Returns the paths of the files and plugins used, as written.
    pub fn files(&self) -> &[String] {
        &self.0.files
    }

    /// Returns the model, not started, for queries; a plugin has no state.
    pub fn prototype(&self) -> &M {
        &self.0.prototype
    }

    /// Builds the model for one link; `loader` provides plugins' state.
    ///
    /// # Errors
    /// If a plugin cannot be loaded.
    pub fn build(&self, kind: &Kind<M>, loader: &dyn Loader) -> Result<M, SpecError> {
        if models::is_plugin(self.text()) {
            return kind.parse_with(self.text(), loader);
        }
        Ok(self.0.prototype.clone())
    }
}

impl<M: fmt::Display> From<M> for ModelSpec<M> {
    /// Wraps a model built in Rust. Its description becomes the specification text.
    fn from(prototype: M) -> ModelSpec<M> {
        ModelSpec(Arc::new(Parsed {
            text: prototype.to_string(),
            prototype,
            doubts: Vec::new(),
            files: Vec::new(),
        }))
    }
}

/// A loader that records the paths read.
struct NotingLoader<'a> {
    loader: &'a dyn Loader,
    paths: RefCell<Vec<String>>,
}

impl Loader for NotingLoader<'_> {
    fn read(&self, path: &str, take: TakePiece<'_>) -> Result<(), String> {
        self.paths.borrow_mut().push(path.to_string());
        self.loader.read(path, take)
    }

    fn plugin(
        &self,
        path: &str,
        hook: Hook,
        parameters: &[(String, String)],
    ) -> Result<Box<dyn Plugin>, String> {
        self.paths.borrow_mut().push(path.to_string());
        self.loader.plugin(path, hook, parameters)
    }
}

impl<M> PartialEq for ModelSpec<M> {
    fn eq(&self, other: &ModelSpec<M>) -> bool {
        self.0.text == other.0.text
    }
}

impl<M> Eq for ModelSpec<M> {}

impl<M> fmt::Display for ModelSpec<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}
