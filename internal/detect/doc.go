// Package detect looks at a repository and says what a workshop for it needs: which
// hosts package managers ask, which programs, variables and workers, and how its tests
// are run. It grants nothing: `init` shows what was found, and writes it into a file
// that a person reads.
//
// It is pure over an fs.FS. A repository is hostile input: files are read up to a
// limit, directories up to a number of entries and two levels deep, links out of the
// repository are not followed, and no text of it is taken over unless it is a name of
// our own list or checked (B60).
package detect
