// Package secretsource reads a user's secrets from where the user keeps them: a variable of
// the environment, a file, the system's keyring, or what a command prints. No error has any
// of a value.
package secretsource

import (
	"context"
	"fmt"
	"time"
)

// MaxValue bounds a value, in bytes.
const MaxValue = 64 << 10

// CommandTime bounds how long a command runs.
const CommandTime = 30 * time.Second

// Service is the name of the program's entries in the keyring.
const Service = "workshop"

// Source says where a value is; exactly one field is set.
type Source struct {
	Env     string   // name of a variable
	File    string   // absolute path
	Keyring string   // name of the entry, of [Service]
	Command []string // program, an absolute path, and its arguments; no shell
}

// String is "env NAME", "file PATH", "keyring NAME" or "command PROGRAM": arguments aren't
// shown.
func (s Source) String() string {
	switch {
	case s.Env != "":
		return "env " + s.Env
	case s.File != "":
		return "file " + s.File
	case s.Keyring != "":
		return "keyring " + s.Keyring
	case len(s.Command) > 0:
		return "command " + s.Command[0]
	}
	return "nothing"
}

// Read returns the value, without one line end after it. An absent, empty or too long value
// is an error, and so is one with control characters or bytes beyond ASCII: it is for a
// header. lookup reads the environment.
func (s Source) Read(ctx context.Context, lookup func(string) (string, bool)) ([]byte, error) {
	var value []byte
	var err error
	switch {
	case s.Env != "":
		v, ok := lookup(s.Env)
		if !ok {
			return nil, fmt.Errorf("%s isn't set in the environment", s.Env)
		}
		value = []byte(v)
	case s.File != "":
		value, err = readFile(s.File)
	case s.Keyring != "":
		value, err = readKeyring(ctx, s.Keyring)
	case len(s.Command) > 0:
		value, err = run(ctx, s.Command, lookup)
	default:
		return nil, fmt.Errorf("it has no source")
	}
	if err != nil {
		return nil, err
	}
	return check(value, s)
}

// check removes one line end and refuses what can't be a value.
func check(value []byte, s Source) ([]byte, error) {
	if n := len(value); n > 0 && value[n-1] == '\n' {
		value = value[:n-1]
		if n > 1 && value[n-2] == '\r' {
			value = value[:n-2]
		}
	}
	switch {
	case len(value) == 0:
		return nil, fmt.Errorf("%s: the value is empty", s)
	case len(value) > MaxValue:
		return nil, fmt.Errorf("%s: the value has more than %d KiB", s, MaxValue>>10)
	}
	for i, c := range value {
		if c < ' ' || c > '~' || c == ' ' && (i == 0 || i == len(value)-1) {
			return nil, fmt.Errorf("%s: the value has a blank at its end, a line break or another character that no token has, at byte %d", s, i+1)
		}
	}
	return value, nil
}
