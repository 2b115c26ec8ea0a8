package workshop

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-playground/validator/v10"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/image/reference"
)

// The patterns of names. They are in the JSON Schema too.
const (
	namePattern       = `^[a-z0-9][a-z0-9_-]{0,62}$`
	envNamePattern    = `^[A-Za-z_][A-Za-z0-9_]*$`
	secretNamePattern = `^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`
	userPattern       = `^[0-9]+(:[0-9]+)?$`
	targetPattern     = `^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`
	serverPattern     = `^[A-Za-z0-9]([A-Za-z0-9_-]{0,30}[A-Za-z0-9-])?$`
	sourcePattern     = `^(git\+(https|ssh)|oci)://[!-~]{1,512}$`
	keyPattern        = `^SHA256:[A-Za-z0-9+/]{43}$`
	runtimePattern    = `^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`
)

var (
	nameRE    = lazily(namePattern)
	envNameRE = lazily(envNamePattern)
	secretRE  = lazily(secretNamePattern)
	cacheRE   = lazily(cacheNamePattern)
	userRE    = lazily(userPattern)
	targetRE  = lazily(targetPattern)
	runtimeRE = lazily(runtimePattern)
	serverRE  = lazily(serverPattern)
	sourceRE  = lazily(sourcePattern)
	keyRE     = lazily(keyPattern)
)

// lazily compiles a pattern when it is first needed: every command links this
// package, and most of its starts match nothing.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// rules returns the validator with our own rules registered. It is safe for
// concurrent use and never changed after.
var rules = sync.OnceValue(func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	text := func(name string, ok func(string) bool) {
		err := v.RegisterValidation(name, func(fl validator.FieldLevel) bool { return ok(fl.Field().String()) })
		if err != nil {
			panic(err) // a name that validator reserves: a mistake in this file
		}
	}
	text("name", func(s string) bool { return nameRE().MatchString(s) })
	text("envname", func(s string) bool { return envNameRE().MatchString(s) })
	text("secretname", func(s string) bool { return secretRE().MatchString(s) })
	text("cachename", func(s string) bool { return cacheRE().MatchString(s) })
	text("uidgid", func(s string) bool { return userProblem(s) == "" })
	text("stage", func(s string) bool { return targetRE().MatchString(s) })
	text("servername", func(s string) bool { return serverRE().MatchString(s) })
	text("source", func(s string) bool { return sourceRE().MatchString(s) })
	text("fingerprint", func(s string) bool { return keyRE().MatchString(s) })
	text("modelfile", func(s string) bool { return modelFileRE().MatchString(s) })
	text("sha256", func(s string) bool { return sha256RE().MatchString(s) })
	text("runtime", func(s string) bool { return runtimeRE().MatchString(s) })
	text("imageref", func(s string) bool {
		_, err := reference.Parse(s)
		return err == nil
	})
	text("abspath", func(s string) bool { return strings.HasPrefix(s, "/") && path.Clean(s) == s })
	text("oneline", func(s string) bool { return !strings.ContainsAny(s, "\n\r\x00") })
	text("text", func(s string) bool { return strings.TrimSpace(s) != "" })
	return v
})

// What the kernel counts for each uid, the guard and the outlet share with
// nobody.
const (
	outletID = 65531
	guardID  = 65532
)

// ReservedID reports whether a uid or gid is the guard's or the outlet's, which no
// worker may have.
func ReservedID(id int) bool { return id == guardID || id == outletID }

const rootProblem = "is root, or has the group of root"

// userProblem returns what is wrong with "uid" or "uid:gid".
func userProblem(s string) string {
	if name, group, _ := strings.Cut(s, ":"); name == "root" || group == "root" {
		return rootProblem
	}
	if !userRE().MatchString(s) {
		return "is not a numeric uid or uid:gid"
	}
	for part := range strings.SplitSeq(s, ":") {
		switch n, err := strconv.ParseInt(part, 10, 32); {
		case err != nil:
			return "has an id above 2147483647"
		case n == 0:
			return rootProblem
		case ReservedID(int(n)):
			return "has the id of the guard or the outlet"
		case part[0] == '0':
			return "has an id with leading zeros"
		}
	}
	return ""
}

// checkRule runs the rules of a `validate` tag on one value and reports the
// first that fails.
func (d *decoder) checkRule(at diag.Range, value any, tag, name string) bool {
	err := rules().Var(value, tag)
	if err == nil {
		return true
	}
	var fields validator.ValidationErrors
	if !errors.As(err, &fields) || len(fields) == 0 {
		panic("workshop: rule " + tag + ": " + err.Error())
	}
	rule, param := fields[0].Tag(), fields[0].Param()
	shown := clip(fmt.Sprint(value))
	if x, ok := value.(float64); ok {
		shown = strconv.FormatFloat(x, 'f', -1, 64)
	}
	switch rule {
	case "oneof":
		d.notOneOf(at, shown, strings.Fields(param), name)
		return false
	case "name":
		d.fail(at, "bad-name", fmt.Sprintf("%s %q is not a valid name", name, shown), nameHint(shown))
	case "source":
		d.fail(at, "bad-source", fmt.Sprintf("%s %q is not the address of a source", name, shown), sourceHint(shown))
	case "fingerprint":
		d.fail(at, "bad-source", fmt.Sprintf("%s %q is not the fingerprint of a key", name, shown), "write SHA256:… as `ssh-keygen -lf KEY.pub` prints it")
	case "envname":
		d.fail(at, "bad-name", fmt.Sprintf("%s %q is not a variable's name", name, shown), "use letters, digits and _ only, with no digit first")
	case "secretname":
		d.fail(at, "bad-name", fmt.Sprintf("%s %q is not a secret's name", name, shown), "use letters, digits, _, . and - only: it is the name of a file in /run/secrets")
	case "cachename":
		hint := "use small letters, digits, _ and - only, at most 32; known are " + strings.Join(knownCacheNames(), ", ")
		if near := nearest(strings.ToLower(shown), knownCacheNames()); near != "" {
			hint = "did you mean " + near + "?"
		}
		d.fail(at, "bad-name", fmt.Sprintf("%s %q is not a cache's name", name, shown), hint)
	case "uidgid":
		d.userError(at, shown)
	case "semver":
		d.fail(at, "bad-value", fmt.Sprintf("%s %q is not a semantic version", name, shown), "write three numbers: version: "+nearVersion(shown))
	case "imageref":
		d.imageError(at, shown, fmt.Sprint(value), name)
	case "abspath":
		hint := ""
		if c := path.Clean("/" + shown); c != shown {
			hint = "write " + c
		}
		d.fail(at, "bad-path", fmt.Sprintf("%s %q is not an absolute, clean path in the container", name, shown), hint)
	case "oneline":
		d.fail(at, "bad-value", fmt.Sprintf("%s must be one line", name), "")
	case "text":
		d.fail(at, "bad-value", fmt.Sprintf("%s is empty", name), "write a value or remove the key")
	case "servername":
		d.fail(at, "bad-name", fmt.Sprintf("%s %q is not an MCP server's name", name, shown), "use letters, digits, _ and - only, at most 32, with no _ at the end")
	case "modelfile":
		d.fail(at, "bad-value", fmt.Sprintf("%s %q is not the name of a GGUF file", name, shown), "write the name alone, as qwen.gguf: it is a file in your directory of models, ~/.local/share/workshop/models")
	case "sha256":
		d.fail(at, "bad-value", fmt.Sprintf("%s %q is not a SHA-256", name, shown), "write 64 small hexadecimal digits, as `sha256sum FILE` prints them")
	case "stage", "runtime":
		d.fail(at, "bad-name", fmt.Sprintf("%s %q is not a name", name, shown), "use letters, digits, _, . and - only")
	case "min", "max":
		d.outOfRange(at, shown, rule, param, name)
	default:
		d.fail(at, "bad-value", fmt.Sprintf("%s %q breaks the rule %s", name, shown, rule), "")
	}
	return false
}

func (d *decoder) imageError(at diag.Range, shown, image, name string) {
	_, err := reference.Parse(image)
	var e *reference.Error
	if !errors.As(err, &e) {
		panic("workshop: image " + shown + " has no error")
	}
	d.fail(at, "bad-value", fmt.Sprintf("%s %q %s", name, shown, e.Problem), e.Hint)
}

func (d *decoder) userError(at diag.Range, user string) {
	hint := `write numbers: user: "1000:1000"`
	detail := ""
	if userProblem(user) == rootProblem {
		detail = "A worker never runs as root (B4)."
		hint = `write another id, or leave user out: then it is your own`
	}
	if strings.HasPrefix(userProblem(user), "has the id of the guard") {
		detail = "The kernel limits some resources per uid: a worker with this id could exhaust those of the guard and cut the network of every workshop (B60)."
		hint = `write another id, or leave user out: then it is your own`
	}
	d.failDetail(at, "bad-user", fmt.Sprintf("user %q %s", user, userProblem(user)), detail, hint)
}

// outOfRange reports min and max of sizes, durations and numbers.
func (d *decoder) outOfRange(at diag.Range, value, rule, param, name string) {
	show := func(n string) string { return n }
	unit := ""
	switch {
	case strings.Contains(name, "memory"), name == "scratch", name == "tmp", name == "shm", name == "home":
		show = func(n string) string { x, _ := strconv.ParseInt(n, 10, 64); return Size(x).String() }
		if n, _ := strconv.ParseInt(value, 10, 64); n > 0 && n < 64 {
			unit = "G"
		} else if n > 0 && n < 1024 {
			unit = "M"
		}
	case name == "timeout":
		show = func(n string) string { x, _ := strconv.ParseInt(n, 10, 64); return time.Duration(x).String() }
	}
	limit, word := show(param), "less than"
	if rule == "max" {
		word = "more than"
	}
	which := "least"
	if rule == "max" {
		which = "most"
	}
	hint := fmt.Sprintf("write at %s %s", which, limit)
	if unit != "" {
		hint = fmt.Sprintf("write %s: %s%s; a number without a unit is bytes", name, value, unit)
	}
	d.fail(at, "out-of-range", fmt.Sprintf("%s is %s, %s %s", name, show(value), word, limit), hint)
}

// sourceHint is the address that was probably meant.
func sourceHint(s string) string {
	host, _, deeper := strings.Cut(s, "/")
	switch {
	case sourceRE().MatchString("git+" + s):
		return fmt.Sprintf("write %q", "git+"+s)
	case deeper && strings.Contains(host, ".") && !strings.Contains(s, ":") && host[0] != '.':
		return fmt.Sprintf("write %q", "git+https://"+s)
	}
	return `write "git+https://HOST/PATH//DIRECTORY"`
}

// nameHint makes a name of what was written.
func nameHint(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', b.Len() > 0 && (r == '_' || r == '-'):
			b.WriteRune(r)
		case b.Len() > 0:
			b.WriteByte('-')
		}
	}
	rule := "a name has lower-case letters, digits, _ and -, and at most 63 characters"
	made := b.String()[:min(b.Len(), 63)]
	made = strings.TrimRight(made, "-_")
	if made == "" || made == s {
		return rule
	}
	return "write " + made + "; " + rule
}

// nearVersion is the semantic version that was probably meant.
func nearVersion(s string) string {
	s = strings.TrimPrefix(s, "v")
	for range 2 {
		if rules().Var(s, "semver") == nil {
			return s
		}
		s += ".0"
	}
	return "1.2.0"
}
