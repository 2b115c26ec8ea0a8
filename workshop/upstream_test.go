package workshop

import (
	"fmt"
	"testing"
	"testing/fstest"
)

// upstreamProject is a project whose network has one more key.
func upstreamProject(network, dotenv string) fstest.MapFS {
	return fstest.MapFS{
		"workshop.yaml":     {Data: []byte("workshop:\n  name: test\n  container:\n    image: i:1\n    network: {mode: restricted, allow: [example.org], " + network + "}\n  workers: [worker]\n")},
		"workers/worker.md": {Data: []byte("---\nallowed-tools: Read\n---\nx\n")},
		".env":              {Data: []byte(dotenv)},
		"mine.env":          {Data: []byte("MINE=127.0.0.1\n")},
	}
}

// B26, B31: what the repository names as proxy or resolver is no address of the
// machine's own; the user's word opens it, for the whole host alone.
func TestUpstreamsOfTheRepository(t *testing.T) {
	env := map[string]string{
		"PROXY": "http://127.0.0.1:3128", "HOST": "127.0.0.1", "HOST6": "::1", "PART": "27.0.0.1", "CREDENTIALS": "me:secret", "TRICK": "x@127.0.0.1", "PORT": "3128",
		"NAME": "me", "PASSWORD": "secret", "WITH": "http://me:secret@proxy.example.org:3128",
		"FAR": "http://proxy.example.org:3128", "RESOLVER": "127.0.0.53", "EMPTY": "",
	}
	const dotenv = "OURS=http://127.0.0.1:3128\nOURHOST=127.0.0.1\nRESOLVED=127.0.0.53\nOURCREDENTIALS=me:secret\n"
	type row struct {
		network string
		refused bool
		user    bool // its host is the user's word
	}
	tests := []row{
		{`proxy: "http://proxy.example.org:3128"`, false, false},
		{`proxy: "http://10.1.2.3:3128"`, false, false},
		{`proxy: "${PROXY}"`, false, true},
		{`proxy: "${FAR}"`, false, true},
		{`proxy: "${PROXY:-http://proxy.example.org:3128}"`, false, true},
		{`proxy: "${EMPTY:-}"`, false, false},
		{`proxy: "http://${HOST}:3128"`, false, true},
		{`proxy: "http://[${HOST6}]:3128"`, false, true},
		{`proxy: "http://${CREDENTIALS}@${HOST}:3128/"`, false, true},
		{`proxy: "http://${MINE}:3128"`, false, true},
		{`dns: ["${RESOLVER}", "${RESOLVER}:5353", "[${HOST6}]:53", "${HOST6}"]`, false, true},
		{`dns: [198.51.100.53, "10.0.0.53:5353"]`, false, false},

		{`proxy: "${UNSET:-http://127.0.0.1:3128}"`, true, false},
		{`proxy: "${EMPTY:-http://127.0.0.1:3128}"`, true, false},
		{`proxy: "http://127.0.0.1:${PORT}"`, true, false},
		{`proxy: "http://1${PART}:3128"`, true, false},
		{`proxy: "http://${CREDENTIALS}@127.0.0.1:3128"`, true, false},
		{`proxy: "http://${CREDENTIALS}@proxy.example.org:3128"`, false, false},
		{`proxy: "http://${NAME}:${PASSWORD}@proxy.example.org:3128"`, false, false},
		{`proxy: "${WITH}"`, false, true},
		{`proxy: "http://me:secret@proxy.example.org:3128"`, true, false},
		{`proxy: "http://me@proxy.example.org:3128"`, true, false},
		{`proxy: "http://me:secret@${HOST}:3128"`, true, false},
		{`proxy: "http://me:${PASSWORD}@proxy.example.org:3128"`, true, false},
		{`proxy: "http://${NAME}:secret@proxy.example.org:3128"`, true, false},
		{`proxy: "http://${NAME}:${PASSWORD}x@proxy.example.org:3128"`, true, false},
		{`proxy: "http://${NAME}:${EMPTY:-}@proxy.example.org:3128"`, false, false},
		{`proxy: "${UNSET:-http://me:secret@proxy.example.org:3128}"`, true, false},
		{`proxy: "http://${OURCREDENTIALS}@proxy.example.org:3128"`, true, false},
		{`proxy: "http://${HOST}@127.0.0.2:3128"`, true, false},
		{`proxy: "http://me:${TRICK}0:3128"`, true, false},
		{`proxy: "http://${HOST}.localhost:3128"`, true, false},
		{`proxy: "${OURS}"`, true, false},
		{`proxy: "http://${OURHOST}:3128"`, true, false},
		{`dns: ["${RESOLVED}"]`, true, false},
		{`dns: ["127.0.0.${PORT:-53}"]`, true, false},
	}
	for _, host := range []string{
		"127.0.0.1", "127.1.2.3", "0.0.0.0", "169.254.169.254", "169.254.1.1", "100.100.100.200", "168.63.129.16",
		"::1", "::", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::1", "fe80::1", "fd00:ec2::254",
	} {
		at := host
		if len(host) > 15 || host[0] == ':' || host[0] == 'f' || host[0] == '6' || host[0] == '2' {
			at = "[" + host + "]"
		}
		tests = append(tests, row{fmt.Sprintf("proxy: %q", "http://"+at+":80"), true, false},
			row{fmt.Sprintf("dns: [%q]", host), true, false}, row{fmt.Sprintf("dns: [%q]", at+":5353"), true, false})
	}
	for _, name := range []string{
		"localhost", "LocalHost", "a.localhost", "localhost.", "ip6-localhost", "metadata.google.internal", "metadata", "instance-data",
		"2130706433", "0x7f.1", "127.1", "0177.0.0.1",
	} {
		tests = append(tests, row{fmt.Sprintf("proxy: %q", "http://"+name+":80"), true, false})
	}
	for _, tt := range tests {
		t.Run(tt.network, func(t *testing.T) {
			w, l := Load(t.Context(), upstreamProject(tt.network, dotenv), "workshop.yaml", Options{
				EnvFiles: []string{"mine.env"},
				Lookup:   func(name string) (string, bool) { v, ok := env[name]; return v, ok },
			})
			if tt.refused {
				if w != nil || l[0].Code != "upstream-refused" && l[0].Code != "bad-value" {
					t.Errorf("got %v, want it refused", l)
				}
				return
			}
			if w == nil {
				t.Fatal(l)
			}
			for _, u := range append(w.Container.Network.DNS, w.Container.Network.Proxy) {
				if u.V != "" && (u.NamedBy == OfUser) != tt.user {
					t.Errorf("%s: named by %v, want the user's %v", u.V, u.NamedBy, tt.user)
				}
			}
		})
	}
}
