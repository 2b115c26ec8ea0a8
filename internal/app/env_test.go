package app

import "io"

// testEnv is an environment whose events are written as plain text.
func testEnv(env *Env, said io.Writer) *Env {
	env.Events = func(e Event) { _, _ = io.WriteString(said, e.Plain()) }
	return env
}
