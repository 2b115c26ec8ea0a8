package workshop

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// decode reads a scalar with its place and template.
func (v *Value[T]) decode(d *decoder, n *node, f *field) bool {
	s, ok := d.scalar(n, f, any(&v.V))
	if !ok {
		return false
	}
	v.Source = s.source()
	return d.parse(s, f, any(&v.V))
}

// scalar reads a node as text with its variables replaced, after checking that
// what is written has the type that into needs.
func (d *decoder) scalar(n *node, f *field, into any) (scalar, bool) {
	want := wanted(into)
	if n.kind != scalarNode || n.isNull() {
		d.wrongType(n, f, want)
		return scalar{}, false
	}
	if len(n.text) > maxScalar {
		d.fail(n.rng, "too-large", fmt.Sprintf("%s has %d bytes, more than %d", f.name(), len(n.text), maxScalar), "")
		return scalar{}, false
	}
	if _, text := into.(*string); text && n.tag != "!!str" && (f == nil || !f.number) {
		d.fail(n.rng, "wrong-type", fmt.Sprintf("%s must be text, found %s", f.name(), n.describe()), fmt.Sprintf("write %q with quotes", clip(n.text)))
		return scalar{}, false
	}
	if _, isBool := into.(*bool); isBool && n.tag != "!!bool" {
		d.wrongType(n, f, want)
		return scalar{}, false
	}
	s, ok := d.expand(n)
	if !ok {
		return s, false
	}
	if strings.ContainsRune(s.text(), 0) {
		d.fail(s.rng(), "bad-value", fmt.Sprintf("%s holds the character NUL, which no program can receive", f.name()), "remove it: in double quotes it is \\0, \\x00 or \\u0000")
		return s, false
	}
	if name := s.variable(); name != "" && f != nil && f.literal != "" {
		d.failDetail(s.rng(), "variable-not-allowed", fmt.Sprintf("%s can't be a variable", f.name()), f.literal, "write the value out")
		return s, false
	}
	return s, true
}

func wanted(into any) string {
	switch into.(type) {
	case *bool:
		return "true or false"
	case *int64, *uint16, *float64:
		return "a number"
	case *Size:
		return "a size such as 512M"
	case *time.Duration:
		return "a duration such as 10m"
	}
	return "text"
}

// parse turns the text of a scalar into a value and checks its rules.
func (d *decoder) parse(s scalar, f *field, into any) bool {
	text := s.text()
	var err error
	var check any
	switch x := into.(type) {
	case *string:
		*x = text
		check = text
	case *bool:
		switch text {
		case "true", "false":
			*x = text == "true"
		default:
			err = fmt.Errorf("%s must be true or false, found %q", f.name(), clip(text))
		}
	case *int64:
		*x, err = parseInt(text, f)
		check = *x
	case *uint16:
		var n int64
		n, err = parseInt(text, f)
		if err == nil && (n < 1 || n > 65535) {
			err = fmt.Errorf("port %d is out of range; ports are 1 to 65535", n)
		}
		*x = uint16(n)
	case *float64:
		*x, err = strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(*x) || math.IsInf(*x, 0) || strings.ContainsAny(text, "xXpP_") {
			err = fmt.Errorf("%s must be a number, found %q", f.name(), clip(text))
		}
		check = *x
	case *Size:
		*x, err = ParseSize(text)
		check = int64(*x)
	case *time.Duration:
		*x, err = parseDuration(text)
		check = int64(*x)
	case *firewall.Mode:
		*x, err = firewall.ParseMode(text)
		if err != nil {
			d.modeUnknown(s.rng(), text, f.name())
			return false
		}
	case *PullPolicy:
		*x = PullPolicy(text)
		check = text
	case *Kernel:
		*x = Kernel(text)
		check = text
	case *Isolation:
		*x = Isolation(text)
		check = text
		if *x == IsolationProcess {
			d.failDetail(s.rng(), "process-isolation", "`isolation: process` can't be set in the file",
				"Without isolation a worker's tools run as you, so only you can ask for it.",
				"remove it; you can ask for it with `--isolation process`, or with `engine: process` in your own settings file")
			return false
		}
	case *Approval:
		*x = Approval(text)
		check = text
	default:
		panic(fmt.Sprintf("workshop: no way to parse %T", into))
	}
	if err != nil {
		hint := ""
		if s.variable() == "" {
			f = d.meant(s.node, f)
		}
		if f != nil {
			hint = f.example
		}
		d.fail(s.rng(), "bad-value", err.Error(), hint)
		return false
	}
	if f == nil || f.validate == "" || check == nil {
		return true
	}
	return d.checkRule(s.rng(), check, f.validate, f.name())
}

func parseInt(text string, f *field) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	// Leading zeros mean octal to some readers; one notation only.
	if digits := strings.TrimPrefix(text, "-"); err != nil || text[0] == '+' || len(digits) > 1 && digits[0] == '0' {
		return 0, fmt.Errorf("%s must be a whole number, found %q", f.name(), clip(text))
	}
	return n, nil
}

func parseDuration(text string) (time.Duration, error) {
	x, err := time.ParseDuration(text)
	if err != nil {
		if _, bare := strconv.ParseFloat(text, 64); bare == nil {
			return 0, fmt.Errorf("the duration %q has no unit; write %ss, or m or h", clip(text), clip(text))
		}
		return 0, fmt.Errorf("%q is not a duration; write 90s, 10m or 1h30m", clip(text))
	}
	return x, nil
}
