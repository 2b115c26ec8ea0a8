package workshop

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/compose-spec/compose-go/v2/dotenv"
)

// envError is a statement of a file of variables that can't be read. Its text may
// hold the value of a secret.
type envError struct {
	line int // where the statement begins
	err  error
}

func (e *envError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e *envError) Unwrap() error { return e.err }

// Errors of files of variables whose size multiplies (B60).
var (
	errEnvValue = fmt.Errorf("a value has more than %d bytes once its variables are put in", maxScalar)
	errEnvWork  = errors.New("too many variables in values")
)

// parseEnv reads NAME=value lines as compose-go does, which is given one statement
// after the other: what each makes of the values before it is bounded then.
// lookup comes before the file's own values; nil: these alone. Errors are
// [envError].
func parseEnv(data []byte, lookup func(string) (string, bool)) (map[string]string, error) {
	values := map[string]string{}
	rest := string(bytes.TrimPrefix(data, []byte("\ufeff")))
	work, size := 0, 0
	for line := 1; rest != ""; {
		n := statementEnd(rest)
		text := rest[:n]
		rest = rest[n:]
		work += n * (1 + strings.Count(text, "$"))
		fail := func(err error) (map[string]string, error) {
			blank := text[:len(text)-len(strings.TrimLeftFunc(text, unicode.IsSpace))]
			return nil, &envError{line + strings.Count(blank, "\n"), err}
		}
		if work > maxEnvWork {
			return fail(errEnvWork)
		}
		entered := 0
		made, err := dotenv.UnmarshalWithLookup(text, func(name string) (value string, ok bool) {
			if lookup != nil {
				value, ok = lookup(name)
			}
			if !ok {
				value, ok = values[name]
			}
			if entered += len(value); entered > maxScalar {
				return "", ok
			}
			return value, ok
		})
		switch {
		case entered > maxScalar:
			return fail(errEnvValue)
		case err != nil:
			return fail(err)
		}
		for k, v := range made {
			values[k] = v
			if size += len(v); size > maxEnvValues {
				return fail(errEnvWork)
			}
		}
		line += strings.Count(text, "\n")
	}
	return values, nil
}

// statementEnd is the byte after the first statement, with the blank lines and
// comments before it. The rules are compose-go's (dotenv/parser.go); where it
// finds an error, it finds the same one in the statement.
func statementEnd(s string) int {
	at := 0
	for {
		at += len(s[at:]) - len(strings.TrimLeftFunc(s[at:], unicode.IsSpace))
		if at == len(s) || s[at] != '#' {
			break
		}
		n := strings.IndexByte(s[at:], '\n')
		if n < 0 {
			return len(s)
		}
		at += n
	}
	sign := strings.IndexAny(s[at:], "=:\n")
	if sign < 0 {
		return len(s)
	}
	at += sign + 1
	if s[at-1] == '\n' {
		return at
	}
	at += len(s[at:]) - len(strings.TrimLeftFunc(s[at:], envBlank))
	if at < len(s) && (s[at] == '"' || s[at] == '\'') {
		return at + quotedEnd(s[at:])
	}
	if n := strings.IndexByte(s[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(s)
}

// envBlank reports whether a value may begin after the character.
func envBlank(r rune) bool { return strings.ContainsRune("\t\v\f\r \u0085\u00a0", r) }

// quotedEnd is the byte after the quote that closes the first one.
func quotedEnd(s string) int {
	escaped := false
	for i := 1; i < len(s); i++ {
		switch {
		case escaped:
			escaped = false
		case s[i] == '\\':
			escaped = true
		case s[i] == s[0]:
			return i + 1
		}
	}
	return len(s)
}
