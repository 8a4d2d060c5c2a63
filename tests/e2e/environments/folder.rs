//! Do environments come and go with the files of a folder?

use std::net::SocketAddr;

use super::*;

/// A gateway with the environments of a folder, and a listener for `e1` and one for `e2`.
struct Scene {
    gateway: Gateway,
    folder: std::path::PathBuf,
}

impl Scene {
    fn start(world: &World) -> Scene {
        let folder = network::folder().join("many");
        fs::create_dir(&folder).expect("writable");
        let mut file = format!("[[environment]]\ndirectory = {folder:?}\n");
        for id in ["e1", "e2"] {
            let more = format!("bind = \"127.0.0.1:0\"\nenvironment = \"{id}\"\n");
            file += &format!("[[listener]]\nkind = \"explicit\"\n{more}");
        }
        fs::write(folder.join("e1.json"), allowing(API)).expect("writable");
        let builder = world.gateway_builder().configuration(&file);
        Scene { gateway: builder.listeners_from_configuration().start(), folder }
    }

    fn client(&self, number: usize) -> RawClient {
        let address = self.gateway.ready()["explicit"][number - 1].as_str().expect("a listener");
        let address: SocketAddr = address.parse().expect("an address");
        RawClient::connect(address, self.gateway.ca())
    }

    fn tunnel(&self, number: usize) -> RawClient {
        self.client(number).connect_tunnel("api.example.com:443").tls(&Hello::to(API))
    }

    /// What a new connection to this listener is answered, or 200.
    fn status(&self, number: usize) -> u16 {
        let tunnel = self.client(number).try_connect_tunnel("api.example.com:443");
        tunnel.map_or_else(|refusal| refusal.status, |_| 200)
    }

    fn wait_status(&self, number: usize, status: u16) {
        let came = wait_until(Duration::from_secs(5), || self.status(number) == status);
        assert!(came, "e{number}: {status} was due, not {}", self.status(number));
    }

    fn has_series(&self, id: &str) -> bool {
        self.gateway.metrics().contains(&format!("environment=\"{id}\""))
    }
}

#[test]
fn an_environment_comes_with_its_file_and_goes_with_it() {
    isolated(|| {
        let world = world!();
        let api = world.https(API).start();
        let scene = Scene::start(&world);
        assert_eq!((scene.status(1), scene.status(2)), (200, 407));
        fs::write(scene.folder.join("e2.json"), allowing(API)).expect("writable");
        scene.wait_status(2, 200);
        assert!(scene.has_series("e1") && scene.has_series("e2"));
        assert_eq!(scene.gateway.metric("outgate_environments"), 2.0);

        let (mut one, mut two) = (scene.tunnel(1), scene.tunnel(2));
        assert_eq!((one.exchange(GET).status, two.exchange(GET).status), (200, 200));
        let records = api.records();
        assert_eq!(records.len(), 2, "each has a connection of its own");

        fs::remove_file(scene.folder.join("e1.json")).expect("it is there");
        scene.wait_status(1, 407);
        assert!(wait_until(Duration::from_secs(5), || records[0].ended()), "it outlived e1");
        assert!(!records[1].ended(), "e2 has nothing to do with it");
        let refused = one.exchange(GET);
        assert_eq!(refused.status, 403, "{refused:?}");
        assert_eq!(two.exchange(GET).status, 200);
        assert!(!scene.has_series("e1") && scene.has_series("e2"));
        assert_eq!(scene.gateway.problems().len(), 0, "a file that was deleted is no mistake");

        fs::write(scene.folder.join("e1.json"), allowing(API)).expect("writable");
        scene.wait_status(1, 200);
        assert_eq!(one.exchange(GET).status, 200, "on the connection that stayed open");
    });
}

#[test]
fn a_folder_that_vanishes_takes_nothing_along() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).start();
        let scene = Scene::start(&world);
        let away = scene.folder.with_extension("away");
        fs::rename(&scene.folder, &away).expect("it is ours");
        assert!(wait_until(Duration::from_secs(5), || !scene.gateway.problems().is_empty()));
        assert_eq!(scene.status(1), 200);
        fs::rename(&away, &scene.folder).expect("it is ours");
        assert!(wait_until(Duration::from_secs(5), || scene.gateway.problems().is_empty()));
        fs::write(scene.folder.join("e2.json"), allowing(API)).expect("writable");
        scene.wait_status(2, 200);
    });
}

#[test]
fn what_is_still_being_copied_into_a_folder_is_denied_until_it_is_whole() {
    isolated(|| {
        let world = world!();
        let _api = world.https(API).start();
        let scene = Scene::start(&world);
        let file = scene.folder.join("e2.json");
        let text = allowing(API);
        fs::write(&file, &text[..20]).expect("writable");
        scene.wait_status(2, 403);
        assert_eq!(scene.gateway.problems().len(), 1);
        fs::write(&file, &text).expect("writable");
        scene.wait_status(2, 200);
        assert_eq!(scene.gateway.problems().len(), 0);
    });
}
