//! Arguments that name a value of a table.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Creates a parser of values by their names, which shows each name with its words in the help.
pub fn value_of<T: Clone + Send + Sync + 'static>(
    values: impl IntoIterator<Item = (T, &'static str, &'static str)>,
) -> impl TypedValueParser<Value = T> {
    let values: Vec<(T, &str, &str)> = values.into_iter().collect();
    let names = values.iter().map(|(_, name, words)| PossibleValue::new(*name).help(*words));
    PossibleValuesParser::new(names.collect::<Vec<_>>()).map(move |chosen| {
        let found = values.iter().find(|(_, name, _)| *name == chosen);
        found.map(|(value, ..)| value.clone()).expect("clap allows no other names")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    #[test]
    fn a_name_chooses_its_value_and_others_are_refused_with_all_names() {
        let colours = value_of([(0xff_0000_u32, "red", "as blood"), (0x00_ff00, "green", "as grass")]);
        let command = Command::new("paint").arg(Arg::new("colour").value_parser(colours));
        let chosen = command.clone().try_get_matches_from(["paint", "green"]).expect("a name of the table");
        assert_eq!(chosen.get_one::<u32>("colour"), Some(&0x00_ff00));
        let refusal = command.try_get_matches_from(["paint", "blue"]).expect_err("no name").to_string();
        assert!(refusal.contains("[possible values: red, green]"), "{refusal}");
    }
}
