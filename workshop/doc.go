// Package workshop reads a workshop.yaml and the files of its workers: what the
// file may say, and what it means.
//
// [Load] is pure: an fs.FS and an environment lookup go in, an immutable
// [Workshop] and all problems with their places come out. The context only ends
// it early. A problem that is an error leaves no Workshop.
//
//	w, problems := workshop.Load(ctx, os.DirFS(dir), "workshop.yaml", workshop.Options{Lookup: os.LookupEnv})
//	if problems.HasErrors() {
//		return problems
//	}
//
// # Guarantees
//
// Each worker of a Workshop has its effective container, which grants at most
// what the workshop's container grants: packages compose and firewall need not
// check it again. The same files and variables give the same Workshop. Input of
// any size costs bounded memory and time. No path of the host that is closed to
// all workers (B7) is a mount source by its text; what symbolic links make of it
// is checked by the engines' host side.
//
// The JSON Schema of the file comes from the same types that it is decoded
// into ([Schema]).
//
// This API is v0: it may change until v1.
package workshop
