// Package workshop is the spec: what a workshop.yaml may say, and what it means.
//
// [Load] is pure: an fs.FS and an environment lookup go in, an immutable
// [Workshop] and all problems with their places come out. In it every worker
// has its effective container, which gives at most what the workshop gives;
// packages compose and firewall need not ask again. A problem that is an error
// leaves no Workshop.
//
//	w, problems := workshop.Load(ctx, os.DirFS(dir), "workshop.yaml", workshop.Options{Lookup: os.LookupEnv})
//
// The JSON Schema of the file comes from the same types that it is decoded
// into ([Schema]).
package workshop
