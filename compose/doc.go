// Package compose compiles a workshop into a hardened Compose project.
//
// [Compile] depends on the workshop alone; [WithFacts] adds what the machine is;
// [Render] and [RenderFacts] write the files that plain `docker compose` runs;
// [Check] lists the promises that a project breaks.
//
//	w, problems := workshop.Load(ctx, os.DirFS(dir), "workshop.yaml", workshop.Options{Lookup: os.LookupEnv})
//	…
//	c, err := compose.Compile(w)
//	…
//	files, err := compose.Render(c)
//
// # Guarantees
//
// The same workshop gives the same bytes: no time, no randomness, and nothing of
// the machine before WithFacts. [Compiled] is immutable. What isn't in the project
// doesn't happen: engines carry it out and decide nothing.
//
// This API is v0: it may change until v1.
package compose
