//! The program `longwire-kube`.
fn main() {
    println!(
        "{}",
        serde_json::to_string_pretty(&longwire_kube::api::definitions()).unwrap()
    );
}
