//! Does anything leave that outgate didn't send?

use super::attacks::Attacks;
use super::*;

for_every_kind![every_attack_would_get_out_without_the_rules, nothing_gets_out_past_the_gateway];

fn every_attack_would_get_out_without_the_rules(kind: Kind) {
    let scene = Scene::without_rules(kind);
    let attacks = attacks(&scene);
    attacks.send(&scene.one);
    let arrived = scene.site.arrived();
    let out = |to| arrived.iter().any(|packet| packet.destination == Some(to));
    let otherwise: Vec<(String, bool)> = attacks
        .all
        .into_iter()
        .filter(|attack| out(attack.to) != attack.leaves)
        .map(|attack| (attack.name, attack.leaves))
        .collect();
    assert_eq!(otherwise, []);
}

fn nothing_gets_out_past_the_gateway(kind: Kind) {
    let scene = Scene::new(kind);
    let _gateway = scene.gateway(&json!([{"domain": API}]));
    attacks(&scene).send(&scene.one);
    assert_eq!(scene.site.leaked(&[]), []);
}

/// The attacks of sandbox `one` on this scene's gateway.
fn attacks(scene: &Scene) -> Attacks {
    Attacks::between(scene.one.mac("eth0"), scene.site.gateway.mac("sbx-one"))
}
