//! Options that name a file.

use std::fs;
use std::path::Path;

use longwire_engine::PARTS;
use longwire_engine::presets::FROM_FILE;
use longwire_engine::spec::{ModelInfo, Param, Unit};

/// A model or preset parameter that names a file or a plugin.
#[derive(Clone, Copy, Debug)]
pub struct FileOption {
    /// Link option.
    pub option: &'static str,
    model: &'static ModelInfo,
    param: &'static Param,
}

impl FileOption {
    /// Returns all registered file options.
    pub fn all() -> Vec<FileOption> {
        let models = PARTS.iter().flat_map(|part| {
            let models = part.models().into_iter();
            models.map(|(_, model)| (part.name, model))
        });
        let models = models.chain([("preset", FROM_FILE)]);
        let all = models.flat_map(|(option, model)| {
            let params = model.params.iter().filter(|param| is_file(param));
            params.map(move |param| FileOption {
                option,
                model,
                param,
            })
        });
        all.collect()
    }

    /// Returns whether the file is a plugin.
    pub fn is_plugin(&self) -> bool {
        self.model.params.iter().any(|it| it.unit == Unit::Rest)
    }

    /// Returns the text of a model that reads `path`. Creates the model's other files in `folder`,
    /// with valid contents.
    ///
    /// # Panics
    ///
    /// If they cannot be written.
    pub fn text(&self, path: &str, folder: &Path) -> String {
        let needed = self.model.params.iter().filter(|it| it.default.is_none());
        let given = needed.filter(|it| it.unit != Unit::Rest).map(|param| {
            let value = match param.unit {
                _ if param.name == self.param.name => path.to_owned(),
                Unit::File(content) => {
                    let other = folder.join(format!("{}-{}", self.model.name, param.name));
                    fs::write(&other, content).expect("a file");
                    other.display().to_string()
                }
                unit => unit.example().to_owned(),
            };
            format!("{}={value}", param.name)
        });
        let given: Vec<String> = given.collect();
        format!("{}:{}", self.model.name, given.join(","))
    }
}

fn is_file(param: &Param) -> bool {
    matches!(param.unit, Unit::File(_))
}
