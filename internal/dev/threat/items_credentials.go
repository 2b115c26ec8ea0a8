package threat

// credentialItems: credentials that the guard adds, and requests of endpoints.
var credentialItems = []Item{
	{
		ID: "C1", Attack: "Reading a credential in the room, in files of ours, logs, cores or panics",
		Fell:   []string{"sbx (OAuth tokens inside)", "agentcage#178", "gh-aw-firewall (CA key in /tmp)"},
		Status: Closed, Answer: "It is in the memory of the guard and of the process that leases it, which aren't dumpable; nothing stands for it in a worker",
		Promises: []string{"B32"}, Tests: []string{"e2e TestB32_Credential", "internal/guard TestB32_Credential", "internal/guard TestB45_CredentialIsNowhere", "internal/guard/proxy TestB45_PanicShowsNoCredential", "internal/broker TestClears"},
	},
	{
		ID: "C2", Attack: "Having it sent elsewhere: another Host, absolute forms, a second request, redirects, upgrades",
		Fell:   []string{"agentcage#175", "OpenShell#2353"},
		Status: Closed, Answer: "The line chooses the host, whatever a request says; redirects to others are not followed and get nothing",
		Promises: []string{"B33", "B35"}, Tests: []string{"internal/guard TestB34_EndpointRefuses", "internal/guard TestB35_EndpointRedirects", "internal/guard TestB33_CredentialOfTwoHosts"},
	},
	{
		ID: "C3", Attack: "A path or method that is read in two ways",
		Fell:   []string{"agent-sandbox (prefixes)", "agent-vault, nono (the raw path is sent)"},
		Status: Closed, Answer: "What isn't canonical is refused, and the bytes that were checked are sent",
		Promises: []string{"B34"}, Tests: []string{"internal/guard TestB34_EndpointRefuses", "e2e TestB34_Endpoint"},
	},
	{
		ID: "C4", Attack: "A credential of the worker's own beside it: in headers, their spellings, the query",
		Status: Closed, Answer: "Its presence is a refusal that says what to remove",
		Promises: []string{"B35"}, Tests: []string{"internal/guard TestB33_OwnCredentials"},
	},
	{
		ID: "C5", Attack: "A repository that names somebody's credential, or wants it for another host or other requests",
		Fell:   []string{"Claude Code's masks (all allowed domains)"},
		Status: Closed, Answer: "Hosts and commands stand in the owner's own file, which never comes from the project; each line is agreed to once, as it is",
		Promises: []string{"B33", "B43"}, Tests: []string{"e2e TestB32_Credential", "internal/broker TestOnlyAllowed", "internal/trust TestCredentials", "internal/guard/lease TestRuleDigest"},
	},
	{
		ID: "C6", Attack: "A host that isn't the one: its certificate, its address",
		Status: Closed, Answer: "TLS is verified by the machine's authorities or the owner's `ca`; the never-list holds for each dial",
		Promises: []string{"B31", "B33"}, Tests: []string{"internal/guard TestB33_EndpointVerifies", "internal/guard TestB33_CredentialVerifies"},
	},
	{
		ID: "C7", Attack: "Around the endpoint: TLS to the host, wildcards, another room's endpoint",
		Status: Closed, Answer: "The host has no other way in the room, and a value is for one room's line",
		Promises: []string{"B33"}, Tests: []string{"internal/guard TestB33_AroundTheEndpoint", "e2e TestB34_Endpoint"},
	},
	{
		ID: "C8", Attack: "Using it after its end: revoked, run out, the process or the guard killed",
		Status: Closed, Answer: "A lease lasts 30 seconds; without one the endpoint answers 503, and revocation cuts what runs",
		Promises: []string{"B27", "B36"}, Tests: []string{"e2e TestB36_CredentialEnds", "internal/guard TestB27_Credential", "internal/guard TestB32_WithoutALease", "internal/broker TestRefreshes"},
	},
	{
		ID: "C9", Attack: "The owner's file or source: links, modes, a command that hangs, floods or prints lines",
		Status: Closed, Answer: "Only a file of the owner alone is read; commands are absolute, without a shell, bounded in time and output",
		Promises: []string{"B33", "B60"}, Tests: []string{"internal/credential TestRead", "internal/credential TestParseRefuses"},
	},
	{
		ID: "C10", Attack: "Pushing to another repository or ref by git, or more than was checked",
		Fell:   []string{"OpenShell (no refs)", "agent-sandbox (no refs)"},
		Status: Closed, Answer: "Each ref of a push is checked before a byte of it is sent; one that isn't open refuses all",
		Remedy:   "A fast-forward and a forced push look alike without the objects: protect branches at the host",
		Promises: []string{"B34"}, Tests: []string{"internal/guard TestB34_GitAttacks", "internal/guard TestB34_GitLFS"},
	},
	{
		ID: "C11", Attack: "Misuse of what a line allows: its requests, what their bodies carry, and what they answer",
		Status: Open, Answer: "The line allows it; `GET /**` with a token that may do all is all",
		Remedy:   "Few paths, tokens with few rights, `room: own` for the worker that needs them: workers of one room share endpoints",
		Promises: []string{"B33"},
	},
	{
		ID: "C12", Attack: "A host that repeats in its answer what it was sent",
		Status: Open, Answer: "It can't be taken out of an answer: it may be encoded or compressed in any way",
		Remedy:   "No path that echoes, and tokens with a short lifetime",
		Promises: []string{"B32"},
	},
	{
		ID: "C13", Attack: "Taking over the guard",
		Status: Open, Answer: "It has what is leased then, for the lines of its workshop",
		Remedy:   "Tokens with few rights and a short lifetime; `workshop credential revoke`, and a new token",
		Promises: []string{"B32"},
	},
	{
		ID: "C14", Attack: "A push that its owner didn't agree to, where they want to be asked: another than was shown, a text that hides it, questions until they say yes",
		Status: Closed, Answer: "The guard holds the bytes until a yes to their refs, all else is a no; nothing in the question is invisible, and a room asks one at a time, after a no not for a minute",
		Promises: []string{"B33", "B60"}, Tests: []string{"internal/guard TestB33_AskPush", "internal/guard/leases TestB60_AsksAreFew", "internal/session/approval TestPushQuestion"},
	},
	{
		ID: "C15", Attack: "The user's ssh-agent: raw data, another namespace or key, a session that is forged, missing or forwarded, a jump through another host; adding, removing and locking keys",
		Fell:   []string{"moat (what is signed isn't parsed)"},
		Status: Closed, Answer: "The agent gets log-ins at the line's hosts, as known_hosts has them and as they signed the session, and messages of its namespaces; nothing else reaches it",
		Promises: []string{"B32", "B33"}, Tests: []string{"internal/sshagent TestConn", "internal/sshagent TestServe", "internal/broker TestDoors", "e2e TestB33_Agents", "e2e TestB33_AgentProtocol"},
	},
	{
		ID: "C16", Attack: "Having the upstream proxy's credential sent elsewhere: another proxy, a resolver of the repository's that answers for its name, an endpoint",
		Status: Closed, Answer: "Its owner's file has the proxy's host and port and its form, which no endpoint has; proxy, name and resolvers are agreed to; without a lease the proxy gets no packet",
		Remedy:   "A proxy of HTTP gets it in clear: trust the network between, or run one on this machine",
		Promises: []string{"B32", "B33", "B36"}, Tests: []string{"e2e TestB32_ProxyCredential", "internal/guard TestB33_ProxyCredential", "internal/guard/egress TestProxyCredential", "internal/guard/lease TestProxyLease", "internal/app TestConsentProxy"},
	},
}
