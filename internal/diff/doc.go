// Package diff compares what two versions of a workshop grant, worker by worker: it is
// what `workshop diff` says of a pull request. It is pure: both sides come as an fs.FS
// and are read without the environment, so that a variable is a symbol, and by the same
// program, so that presets and defaults are the same.
//
// What can be ordered is decided by the rules of narrowing (package workshop). The rest
// is in one table, surfaces, which has an entry for each key of workshop.yaml.
//
// Both sides are hostile input; their text is shown by package diagtext's rules.
package diff
