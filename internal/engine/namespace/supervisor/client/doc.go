// Package client is the host's side of a supervisor (package api): it asks the
// one that lives in a project's state directory, or says that none does.
package client
