package firewall

// Ruleset is the netfilter configuration of a room as data.
type Ruleset struct{}
