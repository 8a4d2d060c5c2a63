use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use outgate_policy::Host;

use super::*;
use crate::credential::OAuth2;
use crate::secret::{Fit, Secret};
use crate::source::Value;

type Script = Box<dyn FnMut(usize) -> Result<TokenAnswer, String> + Send>;

/// An endpoint that answers as told after a while, and remembers what it was sent.
struct Endpoint {
    takes: Duration,
    answers: StdMutex<Script>,
    calls: StdMutex<Vec<(Instant, String)>>,
}

impl TokenTransport for Endpoint {
    fn post<'a>(&'a self, _: &'a TokenUrl, form: Zeroizing<String>) -> Answering<'a> {
        let number = {
            let mut calls = self.calls.lock().expect("no panic");
            calls.push((Instant::now(), form.to_string()));
            calls.len()
        };
        Box::pin(async move {
            tokio::time::sleep(self.takes).await;
            (self.answers.lock().expect("no panic"))(number)
        })
    }
}

#[derive(Default)]
struct Disk {
    stored: StdMutex<Vec<(String, String)>>,
    broken: AtomicBool,
    turn: Turn,
}

impl Rotation for Disk {
    fn turn(&self) -> Turn {
        Arc::clone(&self.turn)
    }

    fn in_force(&self) -> Result<Secret, String> {
        let stored = self.stored.lock().expect("no panic");
        let last = stored.last().map_or("refresh-0", |(_, new)| new);
        Ok(Secret::parse(last, Fit::Text).expect("a secret"))
    }

    fn rotated(&self, used: &Secret, new: &Secret) -> Result<(), String> {
        if self.broken.load(Ordering::SeqCst) {
            return Err("no space left on device".to_owned());
        }
        let pair = (used.reveal().to_owned(), new.reveal().to_owned());
        self.stored.lock().expect("no panic").push(pair);
        Ok(())
    }
}

fn settings() -> OAuth2 {
    let secret = |text: &str| Secret::parse(text, Fit::Text).expect("a secret");
    OAuth2 {
        client_id: "the client".to_owned(),
        client_secret: Value::Given(secret("s&cret")),
        refresh_token: secret("refresh-0"),
        token_url: TokenUrl {
            host: Host::from_wire(b"auth.test").expect("a host"),
            port: 443,
            path: "/token".to_owned(),
        },
        scopes: vec!["a".to_owned(), "b".to_owned()],
    }
}

struct Scene {
    minter: Arc<Minter>,
    means: Arc<Means>,
    endpoint: Arc<Endpoint>,
    disk: Arc<Disk>,
}

impl Scene {
    fn new(
        disk: Disk,
        answers: impl FnMut(usize) -> Result<TokenAnswer, String> + Send + 'static,
    ) -> Scene {
        let endpoint = Arc::new(Endpoint {
            takes: Duration::from_secs(2),
            answers: StdMutex::new(Box::new(answers)),
            calls: StdMutex::default(),
        });
        let disk = Arc::new(disk);
        let means =
            Means { transport: endpoint.clone(), rotation: disk.clone(), files: Arc::default() };
        Scene {
            minter: Arc::new(Minter::new(Grant::Refresh(RefreshGrant::new(
                &settings(),
                &Arc::default(),
            )))),
            means: Arc::new(means),
            endpoint,
            disk,
        }
    }

    async fn token(&self) -> Result<String, TokenError> {
        let header = self.minter.token(&self.means).await?;
        Ok(header.to_str().expect("text").to_owned())
    }

    fn calls(&self) -> usize {
        self.endpoint.calls.lock().expect("no panic").len()
    }

    fn form(&self, number: usize) -> String {
        self.endpoint.calls.lock().expect("no panic")[number].1.clone()
    }
}

fn answer(body: &str) -> Result<TokenAnswer, String> {
    Ok(TokenAnswer { status: 200, body: body.as_bytes().to_vec().into() })
}

/// Numbered access tokens, and a refresh token that changes each time.
fn rotating(number: usize) -> Result<TokenAnswer, String> {
    answer(&format!(
        r#"{{"access_token": "access-{number}", "refresh_token": "refresh-{number}",
            "expires_in": 3600}}"#
    ))
}

#[tokio::test(start_paused = true)]
async fn two_hundred_requests_make_one_call_and_the_new_refresh_token_is_durable_first() {
    let scene = Arc::new(Scene::new(Disk::default(), rotating));
    let asking: Vec<_> = (0..200)
        .map(|_| {
            let scene = Arc::clone(&scene);
            tokio::spawn(async move {
                let token = scene.token().await;
                let durable = !scene.disk.stored.lock().expect("no panic").is_empty();
                (token, durable)
            })
        })
        .collect();
    for one in asking {
        assert_eq!(one.await.expect("no panic"), (Ok("Bearer access-1".to_owned()), true));
    }
    assert_eq!(scene.calls(), 1);
    let stored = scene.disk.stored.lock().expect("no panic").clone();
    assert_eq!(stored, [("refresh-0".to_owned(), "refresh-1".to_owned())]);
    let form = "grant_type=refresh_token&client_id=the%20client&client_secret=s%26cret\
                &refresh_token=refresh-0&scope=a%20b";
    assert_eq!(scene.form(0), form);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_replaced_before_its_end_while_it_is_still_used() {
    let scene = Scene::new(Disk::default(), rotating);
    assert_eq!(scene.token().await.as_deref(), Ok("Bearer access-1"));
    tokio::time::sleep(Duration::from_secs(3600 - 299)).await;
    assert_eq!(scene.token().await.as_deref(), Ok("Bearer access-1"), "no wait");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(scene.token().await.as_deref(), Ok("Bearer access-2"));
    assert_eq!(scene.calls(), 2);
    assert!(scene.form(1).contains("refresh_token=refresh-1"));
    // Nobody asked for hours: the old one is not used.
    tokio::time::sleep(Duration::from_secs(7200)).await;
    assert_eq!(scene.token().await.as_deref(), Ok("Bearer access-3"));
}

#[tokio::test(start_paused = true)]
async fn the_call_goes_on_when_the_client_that_caused_it_leaves() {
    let scene = Scene::new(Disk::default(), rotating);
    let left = timeout(Duration::from_secs(1), scene.token()).await;
    assert!(left.is_err());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(scene.disk.stored.lock().expect("no panic").len(), 1);
    assert_eq!(scene.token().await.as_deref(), Ok("Bearer access-1"));
    assert_eq!(scene.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_broken_endpoint_is_called_ever_less_often_and_used_again_when_it_works() {
    let scene = Scene::new(Disk::default(), |number| match number {
        1 => Err("connection refused".to_owned()),
        2 => answer("<html>"),
        3 => Ok(TokenAnswer { status: 500, body: Vec::new().into() }),
        _ => rotating(number),
    });
    let begun = Instant::now();
    let mut last = scene.token().await;
    while last.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        last = scene.token().await;
    }
    let calls = scene.endpoint.calls.lock().expect("no panic").clone();
    let at: Vec<_> = calls.iter().map(|(at, _)| (*at - begun).as_secs()).collect();
    // Two seconds for each call, then 1, 2 and 4 of silence.
    assert_eq!(at, [0, 3, 7, 13]);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_over_at_once_makes_no_storm() {
    for expires in ["0", "-1"] {
        let body = format!(r#"{{"access_token": "a", "expires_in": {expires}}}"#);
        let scene = Scene::new(Disk::default(), move |_| answer(&body));
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until {
            assert_eq!(scene.token().await.as_deref(), Ok("Bearer a"));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let calls = scene.endpoint.calls.lock().expect("no panic").clone();
        for pair in calls.windows(2) {
            assert!(pair[1].0 - pair[0].0 >= Duration::from_secs(1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_access_token_is_not_used_before_its_refresh_token_is_stored_and_that_one_is_not_lost() {
    let scene = Scene::new(Disk { broken: true.into(), ..Disk::default() }, rotating);
    assert!(matches!(scene.token().await, Err(TokenError::NotDurable(_))));
    tokio::time::sleep(LONGEST_BACK_OFF).await;
    assert!(matches!(scene.token().await, Err(TokenError::NotDurable(_))));
    assert_eq!(scene.calls(), 1, "none with the one that is worth nothing any more");
    scene.disk.broken.store(false, Ordering::SeqCst);
    tokio::time::sleep(LONGEST_BACK_OFF).await;
    assert_eq!(scene.token().await.as_deref(), Ok("Bearer access-2"));
    assert!(scene.form(1).contains("refresh_token=refresh-1"));
    let stored = scene.disk.stored.lock().expect("no panic").clone();
    let pair = |used: &str, new: &str| (used.to_owned(), new.to_owned());
    assert_eq!(stored, [pair("refresh-0", "refresh-1"), pair("refresh-1", "refresh-2")]);
}

#[tokio::test(start_paused = true)]
async fn two_minters_of_a_credential_never_call_with_the_same_refresh_token() {
    let scene = Scene::new(Disk::default(), rotating);
    let other =
        Arc::new(Minter::new(Grant::Refresh(RefreshGrant::new(&settings(), &Arc::default()))));
    let (one, other) = tokio::join!(scene.token(), other.token(&scene.means));
    assert!(one.is_ok() && other.is_ok());
    assert!(scene.form(0).contains("refresh_token=refresh-0"));
    assert!(scene.form(1).contains("refresh_token=refresh-1"));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_never_answers_is_given_up() {
    let scene = Scene::new(Disk::default(), rotating);
    let slow = Endpoint {
        takes: Duration::from_secs(3600),
        answers: StdMutex::new(Box::new(rotating)),
        calls: StdMutex::default(),
    };
    let means =
        Means { transport: Arc::new(slow), rotation: scene.disk.clone(), files: Arc::default() };
    let begun = Instant::now();
    let outcome = scene.minter.token(&Arc::new(means)).await;
    assert_eq!(outcome.err(), Some(TokenError::Late(CALL)));
    assert_eq!(begun.elapsed(), CALL);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_origins_refuse_is_replaced_once_and_then_left() {
    let scene = Scene::new(Disk::default(), rotating);
    let first = scene.minter.token(&scene.means).await.expect("a token");
    assert!(scene.minter.refused(&first).await, "worth another try");
    let second = scene.minter.token(&scene.means).await.expect("a token");
    assert_eq!(second, "Bearer access-2");
    assert!(scene.minter.refused(&first).await, "another has taken its place");
    assert!(!scene.minter.refused(&second).await, "refused again: no loop");
    assert_eq!(scene.minter.token(&scene.means).await.expect("a token"), second);
    assert_eq!(scene.calls(), 2);
    let counted = AtomicUsize::new(0);
    for _ in 0..100 {
        if scene.minter.refused(&second).await {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    }
    assert_eq!(counted.into_inner(), 0);
}
