// Package app has the use cases without a terminal: what the commands, package
// client and later `llmdo run` have in common. It writes nothing to a stream and
// asks nobody by itself: its callers pass callbacks.
package app
