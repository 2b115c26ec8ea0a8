// Package client uses a workshop's workers from a Go program: it opens a
// workshop, lists its workers, and calls their tools, which run in the workers'
// containers. Approvals, the audit log and the limits of each worker's file are
// those of `workshop tools` and `workshop call`.
//
//	w, err := client.Open(ctx, client.Options{Up: true})
//	if err != nil {
//		return err
//	}
//	defer w.Close()
//	result, err := w.Call(ctx, "reviewer", "read_file", map[string]any{"path": "main.go"})
//
// A call that the workshop's approvals ask about is put to Options.Approve;
// without that function it is refused. A tool that ran and failed is not an error:
// see [Result.Failed].
//
// [Workshop.Policy], Allow, Deny, Reload and Events show and change what the workers may
// reach while they run.
//
// The audit log and the user's settings are found by the environment, as the
// program workshop finds them: HOME, XDG_STATE_HOME, XDG_CONFIG_HOME,
// DOCKER_HOST and the WORKSHOP_ variables. The package prints nothing.
//
// # Guarantees
//
// A call is executed at most once. A tool that a worker's file doesn't list is
// neither offered nor executed, and a call that needs a yes runs only after one.
// Decisions are made in this process, never in a worker. A [Workshop] is safe for
// use by several goroutines.
//
// This API is v0: it may change until v1.
package client
