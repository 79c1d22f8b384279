//! Many who spend of one lease at the same time.

use serde_json::json;
use tenure_testkit::TestServer;

use super::{claim, derive, show_work, spend};

// S2-108, S2-111
#[test]
fn concurrent_spends_never_exceed_the_budget() {
    const EACH: u64 = 12;
    let server = TestServer::start();
    // Enough for some of them.
    let lease = claim(&server, "plan", &json!({"tokens": 5_000}));
    let acknowledged: Vec<u64> = std::thread::scope(|scope| {
        let spender = |number: u64| {
            let (server, lease) = (&server, &lease);
            scope.spawn(move || {
                let amounts = (0..EACH).map(|round| 1 + (number * 7 + round * 3) % 20);
                let spent = amounts.filter(|amount| match spend(server, lease, *amount, None) {
                    answer if answer.status == 200 => true,
                    answer => {
                        let remaining = answer.json()["remaining"]["tokens"].as_u64();
                        assert_eq!(super::code(&answer), (409, "BUDGET_EXCEEDED".into()));
                        assert!(
                            remaining.is_some_and(|budget| budget < *amount),
                            "there was enough: {answer:?}"
                        );
                        false
                    }
                });
                spent.sum::<u64>()
            })
        };
        let spenders: Vec<_> = (0..64).map(spender).collect();
        spenders.into_iter().map(|spender| spender.join().unwrap()).collect()
    });
    let shown = show_work(&server, &lease)["work"].clone();
    let (spent, remaining) =
        (shown["spent"]["tokens"].as_u64().unwrap(), shown["remaining"]["tokens"].as_u64().unwrap());
    assert_eq!(acknowledged.iter().sum::<u64>(), spent, "what was acknowledged is what was spent");
    assert_eq!(spent + remaining, 5_000);
    assert!(remaining < 20, "nobody was refused who could have had it: {remaining}");
}

// S2-109, O-16
#[test]
fn concurrent_derivations_never_exceed_the_budget() {
    let server = TestServer::start();
    let lease = claim(&server, "plan", &json!({"tokens": 100}));
    let granted: usize = std::thread::scope(|scope| {
        let derivers: Vec<_> = (0..16)
            .map(|number| {
                let (server, lease) = (&server, &lease);
                scope.spawn(move || {
                    let part =
                        derive(server, lease, &format!("part-{number}"), 60_000, &json!({"tokens": 9}));
                    usize::from(part.status == 201)
                })
            })
            .collect();
        derivers.into_iter().map(|deriver| deriver.join().unwrap()).sum()
    });
    let shown = show_work(&server, &lease)["work"].clone();
    assert_eq!(
        (granted, &shown["given"]["tokens"], &shown["remaining"]["tokens"]),
        (11, &json!(99), &json!(1))
    );
    assert_eq!(shown["children"].as_array().map(Vec::len), Some(11));
}
