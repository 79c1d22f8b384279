//! Requests of the agents API.

use serde_json::{Value, json};

use crate::http::{Response, json_string};
use crate::server::TestServer;

/// One thing that an agent is about to touch: a file, in this way.
pub fn intent(predicate: &str, path: &str) -> Value {
    json!({ "predicate": predicate, "object": { "resource_type": "FILE", "path": path } })
}

/// A manifest of `agent`, which is as old as `priority` says. Each want is a predicate and a path.
pub fn manifest(agent: &str, priority: u64, intents: &[(&str, &str)]) -> Value {
    let intents: Vec<_> = intents.iter().map(|(predicate, path)| intent(predicate, path)).collect();
    json!({ "session_id": "s", "agent_id": agent, "priority_timestamp": priority, "intents": intents })
}

/// The same with another field.
pub fn with_field(mut manifest: Value, field: &str, value: Value) -> Value {
    manifest[field] = value;
    manifest
}

impl TestServer {
    /// Sends a manifest, which must be judged: the verdict.
    #[track_caller]
    pub fn declare(&self, manifest: &Value) -> Value {
        self.post("/v1/manifest", manifest).expect_status(200)
    }

    /// Sends a manifest for files that are to be changed, which must be granted: the ids of the leases.
    #[track_caller]
    pub fn declare_mutations(&self, agent: &str, priority: u64, paths: &[&str]) -> Vec<String> {
        let wants: Vec<_> = paths.iter().map(|path| ("MUTATES", *path)).collect();
        let verdict = self.declare(&manifest(agent, priority, &wants));
        assert_eq!(verdict["verdict"], json!("GRANTED"), "{verdict}");
        lease_ids(&verdict)
    }

    /// Asks something about these leases of an agent.
    pub fn post_agent_leases(&self, what: &str, agent: &str, leases: &[String]) -> Response {
        self.post(&format!("/v1/leases/{what}"), &json!({ "agent_id": agent, "lease_ids": leases }))
    }

    /// Sends a heartbeat.
    #[track_caller]
    pub fn heartbeat(&self, agent: &str, leases: &[String]) -> Value {
        self.post_agent_leases("heartbeat", agent, leases).expect_status(200)
    }

    /// Gives leases back.
    #[track_caller]
    pub fn release_agent_leases(&self, agent: &str, leases: &[String]) -> Value {
        self.post_agent_leases("release", agent, leases).expect_status(200)
    }

    /// What is true of these leases.
    #[track_caller]
    pub fn reconcile(&self, agent: &str, leases: &[String]) -> Value {
        self.post_agent_leases("reconcile", agent, leases).expect_status(200)["leases"].clone()
    }

    /// Says what an agent does.
    pub fn report_agent_state(&self, agent: &str, state: &str) -> Response {
        self.post(&format!("/v1/agents/{agent}/state"), &json!({ "session_id": "s", "state": state }))
    }

    /// Says that an agent touches files in this way.
    pub fn touch(&self, agent: &str, predicate: &str, paths: &[&str]) -> Response {
        let each = |path: &&str| json!({ "resource": format!("FILE:{path}"), "predicate": predicate });
        let resources: Vec<_> = paths.iter().map(each).collect();
        self.post(&format!("/v1/agents/{agent}/touch"), &json!({ "resources": resources }))
    }

    /// An agent as it is.
    #[track_caller]
    pub fn agent(&self, agent: &str) -> Value {
        self.get(&format!("/v1/agents/{agent}")).expect_status(200)
    }

    /// The edges of the wait graph: waiter and holder.
    pub fn contention_edges(&self) -> Vec<(String, String)> {
        let graph = self.get("/v1/contention").json();
        let edges = graph["edges"].as_array().unwrap();
        edges.iter().map(|edge| (json_string(&edge["from"]), json_string(&edge["to"]))).collect()
    }
}

/// The ids of the leases in a verdict.
pub fn lease_ids(verdict: &Value) -> Vec<String> {
    verdict["leases"].as_array().unwrap().iter().map(|lease| json_string(&lease["id"])).collect()
}
