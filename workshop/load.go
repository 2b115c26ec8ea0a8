package workshop

// Options says what Load takes from outside the project's files.
type Options struct {
	// Lookup gives the environment's variables; nil: none.
	Lookup func(name string) (value string, ok bool)
	// EnvFiles are read after the `.env` beside the file, later ones win;
	// paths relative to the fs.FS. The environment wins over all of them.
	EnvFiles []string
	// Home is the caller's home directory, absolute; it is what `~` in a
	// mount source means and is refused as a source. Empty: `~` is an error.
	Home string
}
