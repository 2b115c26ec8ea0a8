package compose

import (
	"strconv"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// env sets a worker's variables: comfort first, then the file's, which win.
func (c *compiler) env(s *types.ServiceConfig, k *workshop.Container, hasRoom bool) {
	e := make(types.MappingWithEquals, 20+len(k.Env))
	for _, p := range comfort {
		e[p.name] = ptr(p.value)
	}
	if hasRoom {
		for _, p := range proxyEnv {
			e[p.name] = ptr(p.value)
		}
		c.endpointEnv(e, &k.Network)
	}
	agentEnv(e, k.Network.Agents)
	if k.Build == nil && k.Image.V == workshop.HostImage {
		e["PATH"] = ptr(HostPath)
	}
	for name, v := range k.Env {
		e[name] = ptr(v.V)
		c.origin(s.Name, "environment."+name, v.Source)
	}
	addGitConfig(e, append(c.gitEndpoints(&k.Network), agentGit(k.Network.Agents)...), func(name, value string) { e[name] = ptr(value) })
	s.Environment = e
}

// gitSetting is one setting of git.
type gitSetting struct{ key, value string }

// addGitConfig sets variables by which git has settings beside those that e has, the file's
// too (git(1), GIT_CONFIG_COUNT).
func addGitConfig(e types.MappingWithEquals, settings []gitSetting, set func(name, value string)) {
	count := 0
	if text := e["GIT_CONFIG_COUNT"]; text != nil && *text != "" {
		n, err := strconv.Atoi(*text)
		if err != nil || n < 0 {
			return // git says so itself
		}
		count = n
	}
	for _, s := range settings {
		n := strconv.Itoa(count)
		set("GIT_CONFIG_KEY_"+n, s.key)
		set("GIT_CONFIG_VALUE_"+n, s.value)
		count++
	}
	if len(settings) > 0 {
		set("GIT_CONFIG_COUNT", strconv.Itoa(count))
	}
}

// HostPath is PATH in workers with `image: host`: where a machine's programs are below /usr: the directories that
// engines have by default (moby/oci, DefaultPathEnv), and Go's, which its
// installation puts on PATH in a profile that no worker reads (go.dev/doc/install).
const HostPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin"

type envPair struct{ name, value string }

// comfort is what programs expect to find. Git refuses repositories of another
// owner, which a mount may well be: safe.directory by environment (git 2.31).
var comfort = []envPair{
	{"GIT_CONFIG_COUNT", "1"},
	{"GIT_CONFIG_KEY_0", "safe.directory"},
	{"GIT_CONFIG_VALUE_0", "*"},
	{"HOME", homeDir},
	{"LANG", "C.UTF-8"},
	{"LOGNAME", workerAccount},
	{"TMPDIR", "/tmp"},
	{"USER", workerAccount},
	{"XDG_CACHE_HOME", homeDir + "/.cache"},
	{"XDG_CONFIG_HOME", homeDir + "/.config"},
	{"XDG_DATA_HOME", homeDir + "/.local/share"},
	{"XDG_STATE_HOME", homeDir + "/.local/state"},
}

// proxyEnv names the guard's explicit proxy, which gives better error texts
// than a reset connection. Both spellings are in use; curl reads http_proxy in
// lower case only.
var proxyEnv = func() []envPair {
	proxy := "http://127.0.0.1:" + strconv.Itoa(firewall.PortProxy)
	const direct = "localhost,127.0.0.1,::1," + WorkerHostname
	return []envPair{
		{"HTTP_PROXY", proxy}, {"HTTPS_PROXY", proxy}, {"NO_PROXY", direct},
		{"http_proxy", proxy}, {"https_proxy", proxy}, {"no_proxy", direct},
	}
}()
