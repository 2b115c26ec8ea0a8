package workshop

import (
	"strings"
	"testing"
)

// The credential of the upstream proxy is a name beside a proxy, whose URL has no user.
func TestProxyCredential(t *testing.T) {
	env := map[string]string{"PROXY": "http://proxy.example.org:3128", "WITH": "http://me:secret@proxy.example.org:3128", "EMPTY": ""}
	for _, tt := range []struct{ network, want string }{
		{`proxy: "http://proxy.example.org:3128", proxy_credential: corp`, ""},
		{`proxy: "${PROXY}", proxy_credential: corp`, ""},
		{`proxy: "${EMPTY:-}", proxy_credential: corp`, ""},
		{`proxy_credential: corp`, "workshop.yaml:5:73: error: proxy_credential is for a proxy, and there is none"},
		{`proxy: "", proxy_credential: corp`, "proxy_credential is for a proxy, and there is none"},
		{`proxy: "${WITH}", proxy_credential: corp`, "workshop.yaml:5:91: error: the proxy's URL has a user, and proxy_credential names another"},
		{`proxy: "${PROXY}", proxy_credential: Corp`, `proxy_credential "Corp" is not a name`},
		{`proxy: "${PROXY}", proxy_credential: "${PROXY}"`, "variable"},
		{`proxy: "${PROXY}", proxy_credential: [corp]`, "proxy_credential"},
	} {
		w, l := Load(t.Context(), upstreamProject(tt.network, ""), "workshop.yaml", Options{
			Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		})
		switch {
		case tt.want == "" && w == nil:
			t.Errorf("%s: %v", tt.network, l)
		case tt.want == "" && w.Container.Network.ProxyCredential.V != "corp":
			t.Errorf("%s: %+v", tt.network, w.Container.Network)
		case tt.want != "" && (w != nil || !strings.Contains(l.Error(), tt.want)):
			t.Errorf("%s: %v, want %s", tt.network, l, tt.want)
		case strings.Contains(l.Error(), "secret"):
			t.Errorf("%s: %v has the password", tt.network, l)
		}
	}
}
