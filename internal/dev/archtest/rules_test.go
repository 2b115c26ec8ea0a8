package archtest

// ban forbids an import below a package.
type ban struct {
	path string // an import path; "…/..." covers everything below it too
	why  string
}

// rule holds for the packages that its from names.
type rule struct {
	from  string // as ban.path
	bans  []ban
	but   string // a package that may be imported all the same
	deeps []ban  // also when another package brings it
}

// effects are what pure packages do without: they get an fs.FS, a lookup
// function and options. `net` is for addresses only by net/netip; `time` is
// fine for durations, time.Now is looked for by TestPureCalls.
var effects = []ban{
	{"os/exec", "pure packages start no programs"},
	{"net", "pure packages have no network; addresses are net/netip"},
	{"net/http", "pure packages have no network"},
	{"os/user", "who the caller is is a fact, collected by internal/facts"},
	{"syscall", "pure packages know no kernel"},
	{"golang.org/x/sys/...", "pure packages know no kernel"},
	{"github.com/docker/docker/...", "only internal/engine/docker knows the Docker client"},
	{"github.com/docker/cli/...", "only internal/engine/docker knows the Docker CLI's configuration"},
	{"github.com/spf13/...", "commands and settings belong to internal/cli"},
}

const module = "github.com/llmdo/workshop"

// verbs are the packages of the command line that have its verbs.
var verbs = []string{"check", "credential", "firewall", "lifecycle", "model", "tools", "worker"}

// apart says of the packages below a directory that none imports another.
func apart(dir string, names []string, why string) []rule {
	var all []rule
	for _, name := range names {
		r := rule{from: module + dir + name}
		for _, other := range names {
			if other != name {
				r.bans = append(r.bans, ban{module + dir + other, why})
			}
		}
		all = append(all, r)
	}
	return all
}

var rules = append(apart("/internal/cli/", verbs, "what two groups of verbs share is internal/cli/command's"), []rule{
	{from: module + "/diag", bans: append([]ban{
		{module + "/...", "diag is the lowest package"},
	}, effects...)},
	{from: module + "/internal/lib/...", bans: []ban{
		{module + "/...", "everything is made of it"},
	}},
	{from: module + "/firewall/...", bans: append([]ban{
		{module + "/workshop/...", "the policy must be usable without the spec: room and guard link it"},
		{module + "/compose/...", "never upward"},
		{module + "/internal/engine/...", "never upward"},
		{module + "/internal/cli/...", "never upward"},
		{"github.com/compose-spec/...", "room and guard link firewall: it stays small"},
		{"go.yaml.in/...", "room and guard link firewall: it stays small"},
		{"github.com/goccy/...", "room and guard link firewall: it stays small"},
	}, effects...)},
	{from: module + "/workshop/...", bans: append([]ban{
		{module + "/compose/...", "never upward"},
		{module + "/internal/engine/...", "never upward"},
		{module + "/internal/cli/...", "never upward"},
	}, effects...)},
	{from: module + "/compose/...", bans: append([]ban{
		{module + "/internal/engine/...", "the compile knows no engine"},
		{module + "/internal/facts/...", "facts come in as data"},
		{module + "/internal/cli/...", "never upward"},
	}, effects...)},
	{from: module + "/schemas/...", bans: append([]ban{
		{module + "/internal/engine/...", "never upward"},
		{module + "/internal/cli/...", "never upward"},
	}, effects...)},
	{from: module + "/internal/egressacl", bans: append([]ban{
		{module + "/workshop/...", "a policy is all that it needs"},
		{module + "/compose/...", "never upward"},
		{module + "/internal/engine/...", "never upward"},
		{module + "/internal/app", "never upward"},
		{module + "/internal/cli/...", "never upward"},
	}, effects...)},
	{from: module + "/internal/diff", bans: append([]ban{
		{module + "/compose/...", "what is granted is compared, not how it is compiled"},
		{module + "/internal/engine/...", "both sides are text"},
		{module + "/internal/app", "never upward"},
		{module + "/internal/cli/...", "never upward"},
	}, effects...)},
	{from: module + "/internal/engine/...", bans: []ban{
		{module + "/internal/cli/...", "never upward"},
		{"github.com/spf13/...", "only internal/cli knows cobra and viper"},
	}},
	{from: module + "/internal/engine/namespace", bans: []ban{
		{module + "/internal/engine/docker", "it works where there is no Docker"},
		{module + "/internal/engine/namespace/container", "its spec is all that the host says"},
		{module + "/internal/engine/namespace/supervisor", "the host speaks with it, by its client"},
		{module + "/internal/lib/landlock", "a container's own"},
	}},
	{from: module + "/internal/engine/copytree", bans: []ban{
		{module + "/internal/engine", "engines use it"},
		{"github.com/docker/docker/...", "a stream for every engine"},
	}},
	{from: module + "/internal/lib/reaper", bans: []ban{
		{"os/exec", "its wait would miss what the reaper collects"},
		{module + "/...", "PID 1 and sessions are made of it"},
	}},
	{from: module + "/internal/toolbox/...", bans: []ban{
		{"os/exec", "its wait would miss what the reaper collects: package reaper"},
		{module + "/internal/session/...", "the host's side"},
		{module + "/internal/cli/...", "never upward"},
		{module + "/internal/engine/...", "never upward"},
	}},
	{from: module + "/internal/lib/atomicfile", bans: []ban{
		{module + "/...", "workshop-init links it, and it writes whatever it is given"},
	}},
	{from: module + "/internal/lib/rmtree", bans: []ban{
		{module + "/...", "it removes whatever it is given"},
	}},
	{from: module + "/internal/image/reference", bans: append([]ban{
		{module + "/...", "the spec, engines and the store read references by it"},
	}, effects...)},
	{from: module + "/internal/image", bans: []ban{
		{module + "/workshop/...", "a store knows images, not workshops"},
		{module + "/compose/...", "a store knows images, not projects"},
		{module + "/internal/engine/...", "an engine uses a store"},
		{module + "/internal/cli/...", "never upward"},
		{"os/exec", "layers are unpacked by our own code"},
		{"github.com/google/go-containerregistry/pkg/crane", "what it brings along is for pushing"},
		{"github.com/google/go-containerregistry/pkg/v1/tarball", "archives are read by limits of our own"},
		{"github.com/google/go-containerregistry/pkg/v1/layout", "layouts are read by limits of our own"},
	}},
	{from: module + "/internal/toolbox/process", bans: append([]ban{
		{module + "/internal/engine/...", "never upward"},
	}, effects...)},
	{from: module + "/internal/facts/...", bans: []ban{
		{module + "/internal/cli/...", "never upward"},
		{"github.com/docker/docker/...", "what the engine is comes in as engine.Info"},
	}},
	{from: module + "/client", bans: []ban{
		{module + "/internal/engine/...", "what opens a workshop is internal/app's, once"},
		{"github.com/spf13/...", "only internal/cli knows cobra and viper"},
	}, deeps: []ban{
		{module + "/internal/cli/...", "a program of one's own has no command line of ours"},
		{"github.com/spf13/cobra", "a program of one's own has no command line of ours"},
		{"github.com/spf13/viper", "a program of one's own has no command line of ours"},
	}},
	{from: module + "/internal/verify", bans: append([]ban{
		{module + "/internal/app/...", "never upward"},
		{module + "/internal/cli/...", "never upward"},
		{module + "/internal/probe/...", "what a probe says is read as a stranger's"},
		{module + "/internal/engine/docker/...", "engines say what they see by engine.Witness"},
		{module + "/internal/engine/namespace/...", "engines say what they see by engine.Witness"},
	}, effects...)},
	{from: module + "/internal/app", bans: []ban{
		{module + "/internal/cli/...", "never upward"},
		{"golang.org/x/term", "who uses it may have no terminal"},
		{"github.com/fatih/color", "who uses it may have no terminal"},
		{"github.com/vbauerster/mpb/...", "who uses it may have no terminal"},
		{"github.com/spf13/pflag", "what the caller says comes in as Settings"},
		{module + "/client", "it is made of this"},
	}},
	{from: module + "/internal/cli/terminal", bans: []ban{
		{module + "/internal/cli/...", "the lowest of the command line: it knows no verb"},
		{"github.com/spf13/...", "the lowest of the command line: it knows no verb"},
	}},
	{from: module + "/cmd/workshop", deeps: []ban{
		{"github.com/santhosh-tekuri/...", "compiles all meta-schemas before main: 4 ms of every start"},
		{"github.com/invopop/...", "schemas are generated, not at run time"},
		{module + "/internal/dev/threat/...", "the catalogue and the intruder are for tests and the document"},
	}},
	{from: module + "/tool", bans: append([]ban{
		{module + "/workshop/...", "workshop-init links the grant, and never sees the spec"},
		{module + "/compose/...", "never upward"},
		{module + "/internal/...", "what tools are is below everything that runs them"},
		{"github.com/google/jsonschema-go/...", "schemas are made on the host alone"},
	}, effects...)},
	{from: module + "/internal/session", bans: []ban{
		{module + "/internal/engine/...", "a Host is given its way to a worker (Dialer)"},
		{module + "/internal/cli/...", "never upward"},
		{module + "/internal/session/mcpserver", "a Host is what it serves"},
	}},
	{from: module + "/internal/session/mcpclient", bans: []ban{
		{module + "/...", "it speaks to a server that it is given, wherever that runs"},
		{"os/exec", "servers run in workers, never on the host (B43)"},
	}},
	{from: module + "/internal/callrule/shellline", bans: append([]ban{
		{module + "/...", "it only reads lines of a shell"},
	}, effects...)},
	{from: module + "/internal/callrule", bans: append([]ban{
		{module + "/workshop/...", "the loader reads rules by it"},
		{module + "/compose/...", "never upward"},
		{module + "/internal/engine/...", "never upward"},
		{module + "/internal/cli/...", "never upward"},
	}, effects...)},
	{from: module + "/internal/session/approval", bans: []ban{
		{module + "/internal/engine/...", "who is asked doesn't depend on what runs"},
		{module + "/internal/cli/...", "never upward"},
	}},
	{from: module + "/internal/session/audit", bans: []ban{
		{module + "/...", "it writes down what it is given"},
	}},
	{from: module + "/internal/broker", bans: []ban{
		{module + "/internal/engine/...", "it is given its way to the guard"},
		{module + "/internal/cli/...", "never upward"},
		{module + "/internal/app", "never upward"},
		{"os/exec", "sources start programs, nothing else"},
	}},
	{from: module + "/internal/lib/cgroup", but: module + "/internal/lib/procinfo", bans: []ban{
		{module + "/...", "workshop-init links it, and what limits a worker stands by itself"},
		{"os/exec", "groups are files: nothing is started for them"},
	}},
	{from: module + "/internal/toolbox/wire", bans: []ban{
		{module + "/...", "it carries messages and knows none of them"},
		{"os/exec", "what is on the other side is its caller's"},
	}, deeps: []ban{
		{"regexp", "workshop-init links it: it stays small"},
		{"text/template", "workshop-init links it: it stays small"},
		{"net/http", "workshop-init links it: it stays small"},
	}},
	{from: module + "/internal/engine/namespace/seccomp", bans: append([]ban{
		{module + "/...", "it has what internal/dev/seccompgen made"},
	}, effects...)},
	{from: module + "/internal/lib/landlock", bans: []ban{
		{module + "/...", "a fence knows nothing of who is behind it"},
	}},
	{from: module + "/internal/engine/namespace/container", bans: []ban{
		{"os/exec", "the supervisor's reaper starts what it starts"},
		{module + "/internal/engine/namespace/supervisor/...", "never upward"},
		{module + "/internal/engine/namespace/seccomp", "the filter comes with the container, made on the host"},
	}, deeps: []ban{
		{"net", "what it links is initialised before each container's start (package early)"},
		{"crypto/...", "what it links is initialised before each container's start (package early)"},
	}},
	{from: module + "/internal/engine/namespace/container/spec", bans: append([]ban{
		{module + "/...", "it is data between host and supervisor, and knows neither"},
	}, effects...)},
	{from: module + "/internal/engine/namespace/supervisor/api", bans: append([]ban{
		{module + "/internal/engine", "never upward"},
		{module + "/internal/engine/namespace", "never upward"},
		{module + "/compose/...", "a supervisor never sees a project"},
	}, effects...)},
	{from: module + "/internal/engine/namespace/supervisor", bans: []ban{
		{"os/exec", "a supervisor starts children by its reaper alone, which collects them"},
		{module + "/internal/engine/namespace/supervisor/client", "that is the other side"},
	}},
	{from: module + "/internal/engine/namespace/supervisor/client", bans: []ban{
		{module + "/internal/engine", "never upward"},
		{module + "/internal/engine/namespace", "never upward"},
		{module + "/internal/engine/namespace/supervisor", "that is the other side"},
	}},
	// workshop-init, and what it is made of, stays small and free of parsers.
	{from: module + "/cmd/workshop-init", deeps: []ban{
		{"github.com/spf13/...", "workshop-init has five verbs and no need of cobra"},
		{"github.com/compose-spec/...", "workshop-init never sees a project"},
		{"github.com/docker/docker/...", "workshop-init never talks to an engine"},
		{"github.com/docker/cli/...", "workshop-init never talks to an engine"},
		{"go.yaml.in/...", "the policy is JSON: one parser less in front of a hostile room"},
		{"gopkg.in/...", "the policy is JSON: one parser less in front of a hostile room"},
		{"github.com/goccy/...", "the policy is JSON: one parser less in front of a hostile room"},
		{"github.com/go-playground/...", "workshop-init validates nothing of the spec"},
		{"mvdan.cc/...", "a limited shell takes argv: the host reads lines"},
		{"github.com/vishvananda/...", "200 kB for three messages of rtnetlink"},
		{"os/exec", "60 kB: what starts here is forked by package reaper, container or probe"},
		{"text/tabwriter", "16 kB for columns of one help text"},
		{"github.com/miekg/dns", "600 kB, and parsers for records that nobody asks for: x/net/dns/dnsmessage reads what the guard needs"},
		{"github.com/mattn/go-runewidth", "tables of widths for text that nobody reads: internal/diagtext stays out"},
		{module + "/workshop/...", "workshop-init never sees the spec"},
		{module + "/compose/...", "workshop-init never sees a project"},
		{module + "/internal/cli/...", "never upward"},
		{module + "/internal/engine", "the planner is the host's"},
		{module + "/internal/engine/docker/...", "an engine is the host's"},
		{module + "/internal/engine/process/...", "an engine is the host's"},
		{module + "/internal/engine/copytree/...", "an engine is the host's"},
		{module + "/internal/engine/namespace", "an engine is the host's: its supervisor and containers are all of it here"},
		{module + "/internal/dev/threat/...", "nothing in a worker brings an intruder's tools along"},
		{module + "/internal/image", "images are unpacked by the host program"},
		{module + "/internal/vm/kit", "kernels are read, and machines run, by workshop-vm alone"},
		{module + "/internal/vm/monitor", "kernels are read, and machines run, by workshop-vm alone"},
	}},
	{from: module + "/internal/vm/guest", but: module + "/internal/vm/config", bans: []ban{
		{"os/exec", "PID 1 collects what it starts"},
		{module + "/internal/vm/...", "it is linked into workshop-init, which has no more of virtual machines"},
	}},
	{from: module + "/internal/vm/report", bans: append([]ban{
		{module + "/...", "it is data between workshop-vm and the host programs"},
	}, effects...)},
	// The host programs read what workshop-vm prints.
	{from: module + "/internal/cli/...", deeps: []ban{
		{module + "/internal/vm/kit", "kernels are read, and machines run, by workshop-vm alone"},
		{module + "/internal/vm/monitor", "kernels are read, and machines run, by workshop-vm alone"},
	}},
	{from: module + "/cmd/workshop-vm", but: module + "/internal/engine/namespace/container/spec", deeps: []ban{
		{"github.com/spf13/...", "two commands, and no need of cobra"},
		{"github.com/docker/...", "it never talks to an engine"},
		{"github.com/compose-spec/...", "it never sees a project"},
		{"go.yaml.in/...", "it never sees a workshop.yaml"},
		{module + "/workshop/...", "it never sees the spec"},
		{module + "/compose/...", "it never sees a project"},
		{module + "/internal/engine/...", "an engine runs it"},
		{module + "/internal/cli/...", "never upward"},
		{module + "/internal/room", "rooms are workshop-init's"},
		{module + "/internal/guard", "the guard is workshop-init's"},
	}},
}...)

// exclusive packages may import what nobody else may.
var exclusive = []struct {
	path    string
	allowed []string // packages, and everything below them
	why     string
}{
	{"github.com/docker/docker/...", []string{"internal/engine/docker", "bench", "e2e"}, "only internal/engine/docker knows the Docker client (e2e and bench look from outside)"},
	{"github.com/docker/cli/...", []string{"internal/engine/docker", "internal/image"}, "registry credentials and contexts are the engine's, and those who pull for one"},
	{"github.com/google/go-containerregistry/...", []string{"internal/image", "internal/dev/testutil", "e2e"}, "images are pulled and checked in one place"},
	{"github.com/spf13/cobra", []string{"internal/cli", "bench/empty"}, "only internal/cli knows cobra"},
	{"github.com/spf13/viper", []string{"internal/cli/command", "bench/empty"}, "settings are read in one place"},
	{"golang.org/x/term", []string{"internal/cli/terminal", "e2e", "internal/session/approval"}, "only internal/cli/terminal has a terminal, and the question for an approval"},
	{"github.com/compose-spec/compose-go/v2/loader", []string{"e2e", "bench", "internal/cli"}, "reloading our own YAML costs 40 ms a run: the loader is for tests, import and --check"},
	{"github.com/modelcontextprotocol/...", []string{"internal/session/mcpserver", "internal/session/mcpclient", "examples", "e2e", "bench"}, "the protocol's own types stay where MCP is spoken (e2e and bench look from outside); all else knows session.Host"},
	{module + "/client", []string{"examples", "e2e"}, "the public API is for programs of others: ours use what it is made of"},
	{"mvdan.cc/sh/v3/...", []string{"internal/callrule/shellline"}, "what a line of a shell is, is decided in one place"},
	{"github.com/vishvananda/netns", []string{"internal/room", "internal/dev/testnet"}, "namespaces are entered in one place"},
	{"github.com/cavaliergopher/cpio", []string{"internal/vm/kit"}, "a guest's first files are written in one place"},
	{"github.com/mikelolasagasti/xz", []string{"internal/vm/kit"}, "kernels are unpacked in one place"},
	{"github.com/pierrec/lz4/v4", []string{"internal/vm/kit"}, "kernels are unpacked in one place"},
	{"github.com/godbus/dbus/v5", []string{"internal/lib/systemd"}, "D-Bus is spoken in one place, to the user's systemd"},
}

// maxLines of a file that isn't a test. A longer one is listed here with its
// reason.
const maxLines = 400

var longFiles = map[string]string{}

// entryLines: main packages only hand over.
const entryLines = 20

// words that have a better one of ours (design: vocabulary), not to be used in
// names of our own.
var otherWords = []string{"sandbox", "allowlist", "whitelist", "blacklist"}
