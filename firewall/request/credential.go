package request

import "strings"

// credentialNames are parameters of a query that carry a credential: of OAuth (RFC 6750,
// section 2.3), of presigned addresses of object stores, and of widespread APIs.
var credentialNames = []string{
	"access_token", "accesskey", "access_key", "api_key", "api-key", "apikey", "auth", "auth_token", "authorization", "bearer", "client_secret",
	"code_verifier", "id_token", "job_token", "jwt", "key", "oauth_token", "password", "private_token", "refresh_token", "sig", "signature",
	"session_token", "subscription-key", "token",
}

// credentialPrefixes begin names of presigned addresses.
var credentialPrefixes = []string{"x-amz-", "x-goog-", "x-oss-", "x-ms-"}

// CredentialParameter returns the first parameter of the query that carries a credential,
// as it was sent; "" if there is none. A name counts however it is encoded or parted.
func (t Target) CredentialParameter() string {
	for part := range strings.FieldsFuncSeq(t.query, func(r rune) bool { return r == '&' || r == '?' }) {
		name, _, _ := strings.Cut(part, "=")
		if IsCredentialName(decoded(name)) {
			return name
		}
	}
	return ""
}

// IsCredentialName reports whether a parameter of a query, or a header, is one that carries
// a credential.
func IsCredentialName(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(name)), "[")
	for _, x := range credentialNames {
		if name == x {
			return true
		}
	}
	for _, x := range credentialPrefixes {
		if strings.HasPrefix(name, x) {
			return true
		}
	}
	return false
}

// decoded is a part of a query without its percent-encoding, which is valid.
func decoded(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%' && i+2 < len(s):
			b.WriteByte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
		case s[i] == '+':
			b.WriteByte(' ')
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
