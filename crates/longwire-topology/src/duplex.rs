//! Options of one link in a JSON object, like those of a `[[link]]` table.

use std::sync::Arc;

use longwire_engine::presets::Duplex;
use serde_json::{Map, Value};

use super::fields;
use super::files::Files;
use super::options::OptionStore;
use super::problem::{Diagnostics, Problem};
use super::tree;
use super::value::JsonSource;

/// Prefix of fields in messages.
const AT: &str = "link";

/// Reads the options of a link: for both directions, in tables `up` and `down` for one
/// direction, over those of a `preset`. Also returns warnings.
///
/// # Errors
/// All problems; pointers are relative to `options`.
pub fn duplex_of_json(
    options: &Map<String, Value>,
    files: &Arc<dyn Files>,
) -> Result<(Duplex, Vec<Problem>), Vec<Problem>> {
    let mut source = JsonSource::default();
    let table = source
        .read(options)
        .map_err(|fault| vec![fault.problem(AT)])?;
    let mut diagnostics = Diagnostics::of_json(AT, source);
    diagnostics.checking_shape = true;
    tree::check(&fields::DEFAULTS, &table, AT, &mut diagnostics);
    diagnostics.checking_shape = false;
    let duplex = OptionStore::with(Arc::clone(files)).duplex(&table, AT, &mut diagnostics);
    let warnings = diagnostics.finish()?;
    Ok((duplex, warnings))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::files::StartFiles;
    use super::*;

    fn read(options: &Value) -> Result<(Duplex, Vec<Problem>), Vec<Problem>> {
        duplex_of_json(options.as_object().expect("an object"), &StartFiles::any())
    }

    #[test]
    fn options_of_one_direction_override_those_of_both() {
        let options = json!({ "delay": "20ms", "up": { "delay": "5ms", "rate": "1mbit" } });
        let (duplex, warnings) = read(&options).expect("options");
        assert_eq!(warnings, []);
        assert_eq!(duplex.up.texts("delay"), ["5ms"]);
        assert_eq!(duplex.up.texts("rate"), ["1mbit"]);
        assert_eq!(duplex.down.texts("delay"), ["20ms"]);
        assert_eq!(duplex.down.texts("rate"), <[&str; 0]>::default());
    }

    #[test]
    fn problems_point_to_the_value() {
        let problems = read(&json!({ "delay": "soon", "down": { "loss": "1%" } }));
        let problems = problems.expect_err("no time");
        assert_eq!(problems[0].pointer, "/delay");
        assert!(!problems[0].is_malformed);
        let problems = read(&json!({ "dealy": "1ms" })).expect_err("no option");
        assert!(problems[0].is_malformed, "{problems:?}");
        let problems = read(&json!({ "up": { "delay": null } })).expect_err("no value");
        assert_eq!(problems[0].pointer, "/up/delay");
    }
}
