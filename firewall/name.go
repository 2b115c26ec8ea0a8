package firewall

import (
	"fmt"
	"strings"

	"golang.org/x/net/idna"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// Name is a host name in the one form that policy, DNS, proxy and dialler
// share: lower-case letters, digits and hyphens in labels separated by dots
// (RFC 1035 §2.3.1, RFC 1123 §2.1), internationalised labels as A-labels (RFC
// 5890 §2.3.2.1), at most 253 characters, no trailing dot. Two Names are the
// same host exactly when they are ==. It can only be made by [ParseName], so
// a holder needn't check it again. The zero Name is not a host.
type Name struct{ s string }

// Limits of RFC 1035 §2.3.4; 253 is what 255 octets on the wire leave.
const (
	maxName  = 253
	maxLabel = 63
)

// ParseName parses a host from a ClientHello, a Host header, a DNS question or a
// policy. It folds upper case, and refuses everything that another parser might read
// differently: a trailing dot, an address in any notation (also 2130706433, 0x7f.1), a
// port, user info, NUL, non-ASCII and A-labels that don't decode. Errors are of type
// *[HostError].
func ParseName(s string) (Name, error) {
	lower, err := foldName(s)
	if err != nil {
		return Name{}, err
	}
	if strings.Contains(lower, "xn--") {
		if err := checkALabels(s, lower); err != nil {
			return Name{}, err
		}
	}
	return Name{lower}, nil
}

// String returns the name as in DNS, without a trailing dot.
func (n Name) String() string { return n.s }

// IsZero reports whether n is the zero Name.
func (n Name) IsZero() bool { return n.s == "" }

// MarshalText writes the name as String does.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.s), nil }

// UnmarshalText reads a name as [ParseName] does; empty text is the zero Name.
func (n *Name) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*n = Name{}
		return nil
	}
	var err error
	*n, err = ParseName(string(b))
	return err
}

// foldName checks everything but the content of A-labels and returns s in
// lower case. It allocates only when s has upper case.
func foldName(s string) (string, error) {
	if s == "" {
		return "", hostError(s, HostEmpty, "the host is empty", "")
	}
	if len(s) > maxName {
		return "", hostError(clip.Bytes(s, shown), HostLength, fmt.Sprintf("the host has %d characters, at most %d are allowed (RFC 1035 §2.3.4)", len(s), maxName), "")
	}
	upper := false
	start := 0
	for i := 0; i <= len(s); i++ {
		if i == len(s) || s[i] == '.' {
			if err := checkLabel(s, s[start:i]); err != nil {
				return "", err
			}
			start = i + 1
			continue
		}
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-':
		case c >= 'A' && c <= 'Z':
			upper = true
		default:
			return "", characterError(s, i)
		}
	}
	if upper {
		s = strings.ToLower(s)
	}
	if endsInNumber(s) {
		return "", hostError(s, HostAddress, fmt.Sprintf("%q is an address, not a name", s), addressHint(s))
	}
	return s, nil
}

func checkLabel(s, label string) error {
	switch {
	case label == "" && strings.HasSuffix(s, ".") && len(s) > 1 && !strings.HasSuffix(s, ".."):
		return hostError(s, HostSyntax, "a trailing dot is not allowed", "write "+strings.TrimSuffix(s, "."))
	case label == "":
		return hostError(s, HostSyntax, "the host has an empty label (two dots, or a dot at the beginning)", "")
	case len(label) > maxLabel:
		return hostError(s, HostLength, fmt.Sprintf("a label has %d characters, at most %d are allowed (RFC 1035 §2.3.4)", len(label), maxLabel), "")
	case label[0] == '-' || label[len(label)-1] == '-':
		return hostError(s, HostSyntax, fmt.Sprintf("the label %q begins or ends with a hyphen", label), "")
	}
	return nil
}

// endsInNumber is the test of the WHATWG URL standard ("ends in a number
// checker") for hosts that inet_aton and browsers take for an IPv4 address:
// the last label is decimal or 0x-hexadecimal. No top-level domain looks so.
func endsInNumber(lower string) bool {
	last := lower[strings.LastIndexByte(lower, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// aLabels accepts exactly the A-labels that a browser's lookup would produce:
// valid punycode of a label in normal form (RFC 5891 §5.4). Hyphens in the
// third and fourth place of other labels are in use and harmless.
var aLabels = idna.New(
	idna.ValidateLabels(true),
	idna.CheckHyphens(false),
	idna.CheckJoiners(true),
	idna.BidiRule(),
	idna.StrictDomainName(true),
	idna.Transitional(false),
)

func checkALabels(s, lower string) error {
	for label := range strings.SplitSeq(lower, ".") {
		if !strings.HasPrefix(label, "xn--") {
			continue
		}
		u, err := aLabels.ToUnicode(label)
		if err == nil {
			var back string
			if back, err = toALabels.ToASCII(u); err == nil && back != label {
				err = fmt.Errorf("it is not the encoding of what it decodes to")
			}
		}
		if err != nil {
			return hostError(s, HostIDN, fmt.Sprintf("the label %q is not valid punycode (RFC 5891 §5.4)", label), "")
		}
	}
	return nil
}

// toALabels converts a name written by a person (Bücher.example) to A-labels as
// required by UTS #46 for look-ups, without the transitional mappings of IDNA 2003.
var toALabels = idna.New(
	idna.MapForLookup(),
	idna.CheckHyphens(false),
	idna.CheckJoiners(true),
	idna.BidiRule(),
	idna.StrictDomainName(true),
	idna.Transitional(false),
)
