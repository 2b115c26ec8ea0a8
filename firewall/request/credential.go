package request

import (
	"slices"
	"strings"
)

// credentialNames are parameters of a query that carry a credential: of OAuth (RFC 6750,
// section 2.3), of presigned addresses of object stores, and of widespread APIs. They are
// without what parts their words, which differs: accessToken, access_token, access-token.
var credentialNames = []string{
	"accesskey", "accesstoken", "apikey", "apitoken", "auth", "authkey", "authorization", "authtoken", "bearer", "clientassertion", "clientsecret",
	"codeverifier", "idtoken", "jobtoken", "jwt", "key", "oauthsignature", "oauthtoken", "passwd", "password", "privatetoken", "pwd", "refreshtoken",
	"secret", "sessiontoken", "sig", "signature", "subscriptionkey", "token", "xapikey",
}

// credentialPrefixes begin names of presigned addresses.
var credentialPrefixes = []string{"x_amz_", "x_goog_", "x_oss_", "x_ms_"}

// CredentialParameter returns the first parameter of the query that carries a credential,
// as it was sent; "" if there is none.
func (t Target) CredentialParameter() string { return t.parameter(IsCredentialName) }

// IsCredentialName reports whether a parameter of a query, or a header, is one that carries
// a credential.
func IsCredentialName(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	first, _, _ := strings.Cut(name, "[")
	for _, text := range []string{first, name} { // PHP takes the "[" of access[token for "_"
		if slices.Contains(credentialNames, unparted.Replace(text)) {
			return true
		}
	}
	name = parting.Replace(name)
	return slices.ContainsFunc(credentialPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// unparted takes out what parts the words of a name.
var unparted = strings.NewReplacer("-", "", "_", "", ".", "", " ", "", "[", "", "]", "")

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
