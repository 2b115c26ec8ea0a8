package promise

import "strings"

// Explanation says what a promise means for who reads about it for the first
// time.
type Explanation struct {
	Meaning string `json:"meaning"` // in plain words
	Example string `json:"example"` // what somebody does or sees
	// Tests are packages and the names of tests, as in "e2e: TestB23_*".
	Tests []string `json:"tests"`
}

// Explain returns the explanation of a promise; zero for an unknown number.
func Explain(id string) Explanation {
	e := explanations[id]
	if number, ok := strings.CutPrefix(id, "B"); ok && e.Tests == nil && e.Meaning != "" {
		e.Tests = []string{"e2e: TestB" + strings.Repeat("0", 2-len(number)) + number + "_*"}
	}
	return e
}

// explanations name tests where they aren't the scenarios with the number in their
// names.
var explanations = map[string]Explanation{
	"B1": {"A worker's processes have no Linux capability, and no line of workshop.yaml adds one.",
		"`mount`, `chown` of another user's file and raw sockets fail in a worker with \"operation not permitted\".", nil},
	"B2": {"No program in a worker can gain privileges: setuid programs run as the worker's user, and a seccomp filter refuses system calls that have led out of containers. A process sets only its own priority, scheduling and limits.",
		"`sudo` in a worker prints that it can't become root.", nil},
	"B3": {"The file system of a worker is read-only, except mounts with mode rw, its own caches, and memory file systems with a size: /tmp, /scratch, /home/worker, /dev/shm and the volumes of its image.",
		"`touch /usr/x` fails with \"read-only file system\"; `touch /scratch/x` works.", nil},
	"B4": {"A worker never runs as root. Files that it writes to a mount belong to the uid that it runs as, which is usually yours.",
		"A report in ./output is yours: no sudo is needed to remove it.", nil},
	"B5": {"Each worker has limits of memory, CPU and processes. A machine that can't enforce one is refused, unless a person starts with --without-limits. A kernel of its own counts with the worker: its memory, and on gVisor threads of this machine in the place of processes; processes in a virtual machine are limited by its guest.",
		"A fork bomb in a worker stops at 256 processes; the machine goes on.", nil},
	"B6": {"A worker has process, mount, network, IPC and host name namespaces apart from the host's, no devices but harmless ones such as /dev/null, and never sees the socket of an engine. Of a worker with a kernel of its own that holds for the processes in which its kernel runs; those of a virtual machine have /dev/kvm besides.",
		"`ps` in a worker lists the worker's own processes.", nil},
	"B7": {"The usual places of credentials, the machine's settings, whole home directories and engines' sockets can't be mounted, by any key of the file. Symbolic links are followed before this is decided. Other files of a home need `outside_project: true`.",
		"`mounts: [\"~/.ssh:/keys\"]` is refused with protected-path.", nil},
	"B8": {"Directories by which your own programs run others later (.git with its hooks, .vscode, .github) are read-only below a mount with mode rw, if they exist when the worker starts. New ones, and single files (.envrc, .mcp.json, workshop.yaml), can be written there and are compared: `ps`, `down` and `up` name what changed, but nothing prevents it. Names that nobody listed are neither.",
		"A worker can't write .git/hooks/pre-commit, which your next commit would run. If it makes a new .vscode/tasks.json, `ps` names it.", nil},
	"B9": {"A mount with `exclude:` is a copy without what the patterns match, so a worker can't find that by another path. They match names: a hard link with another name is copied.",
		"`exclude: [\".env\"]`: the worker's copy has no .env.", nil},
	"B10": {"Published ports listen on 127.0.0.1, unless the file names another address and says that more is meant.",
		"`ports: [\"8080:8080\"]` can be opened in your browser, not from the next machine.", nil},
	"B11": {"A secret's value is only in the worker that is given it: not in images, generated files, labels, command lines, logs or other workers.",
		"`secrets: [{name: token, env: GITHUB_TOKEN}]` is the file /run/secrets/token in that worker.", nil},
	"B12": {"The first process of a worker is workshop's own, not the image's. It waits until the network is enforced before anything else runs. On gVisor another process of the worker can end it, and so the worker. In a virtual machine it is the first of the worker's container in the guest.",
		"An image without a shell works, and its ENTRYPOINT does not run.", nil},
	"B13": {"A worker with `kernel: sandboxed` has a kernel in user space, gVisor's: it speaks to this machine's kernel by few system calls. Each such worker reports the boot id of its kernel before it is ready, and `up` refuses one that is this machine's. B2, B5, B12, B22 and B28 are held differently there, in a virtual machine B5, B6 and B28: docs/engines.md says how. With `kernel: vm`, on namespaces, it has a kernel in a virtual machine, by the processor's virtualization; `up --emulate` does without that, for tests, and doesn't keep this.",
		"`cat /proc/version` in such a worker doesn't show this machine's kernel.",
		[]string{"compose: TestKernel*", "compose: TestMachine*", "internal/engine: TestCompareMade", "internal/engine/namespace: TestTranslateMachine*", "e2e: TestB13_*", "e2e: TestVM*"}},
	"B20": {"A worker's network namespace has loopback and no other interface. There is no way out that a rule would have to close.",
		"`ip link` in a worker shows `lo` alone.", nil},
	"B21": {"Whatever starts, crashes, is killed or restarts, in any order: no packet of a worker leaves that isn't allowed. What other programs make of a worker, as from a checkpoint, isn't covered.",
		"While the guard restarts, connections wait or fail; none goes around it.", nil},
	"B22": {"A worker can't change the rules, routes or sockets of its room, nor listen on the guard's ports. With a kernel of its own it has a network of its own inside, on gVisor with all ports, from which connections are carried to its room.",
		"`nft flush ruleset` in a worker fails, and would open nothing.", nil},
	"B23": {"A look-up of a name that isn't allowed is answered in the room: no packet goes to any resolver, so such names carry no data out. Names under an allowed wildcard can, within limits. This doesn't hold while a worker learns.",
		"`getent hosts secret-data.attacker.example` in a worker finds nothing, and no name server hears of it.", nil},
	"B24": {"On ports 80 and 443 the guard reads the name of the server from the connection, looks it up itself, and connects there. The address that the worker chose doesn't matter. Of TLS it reads the first hello: a request inside can name another host of that server. This holds in mode restricted, except while a worker learns.",
		"An allowed name in the TLS hello, sent to another server's address, reaches the allowed name's server.", nil},
	"B25": {"Ports other than 80 and 443 need a line that names them, and lead only to addresses of that line. Other names at these addresses are reached as well. This holds in mode restricted, except while a worker learns.",
		"`allow: [\"github.com:22\"]` opens port 22 of github.com's addresses, and of no others.", nil},
	"B26": {"Metadata services, loopback and link-local addresses are never reached. This machine (by its addresses at `up`), other containers and private ranges are reached only where a line opens them.",
		"`curl http://169.254.169.254/` in a worker is refused in every mode.", nil},
	"B27": {"Removing a line ends the connections that it had allowed, unless another line allows them.",
		"After `workshop firewall deny api.example.org`, a running download from there ends.", nil},
	"B28": {"Each refused connection fails at once, is counted, and is an event with the reason and, if there is one, the line that would allow it. A kernel of its own refuses by itself what isn't carried to the room: ports that no line names, but for those of well-known services. These refusals aren't counted.",
		"`workshop firewall log --denied` lists them.", nil},
	"B29": {"When the guard crashes it is started again, and workers go on. One that is stopped or removed by hand comes back with the next `up`.",
		"`workshop ps` shows the workers up throughout.", nil},
	"B30": {"Container runtimes that bring a kernel or network stack of their own are refused, because rooms would not control them; except gVisor's for `kernel: sandboxed` (B13), whose connections are carried into the room, as those of virtual machines are. The name of a runtime is not believed: each container reports the boot id of its kernel before it is ready, and `up` compares it with this machine's.",
		"`runtime: runsc` is refused with runtime-network.",
		[]string{"compose: TestRuntimes", "e2e: TestB30_RuntimesThatLie"}},
	"B31": {"Immediately before each connection the guard checks the address itself against those that are never opened, whatever a name resolved to.",
		"An allowed name whose address becomes 127.0.0.1 is not dialled.", nil},
	"B32": {"The value of a credential is added by the guard, outside of the room. It is in no file, environment, memory, log or core of a worker, and in no file of ours. Whoever takes over the guard itself has what is leased then.",
		"`env` and /proc in a worker show no token, and `git push` works.",
		[]string{"internal/guard: TestB32_*", "e2e: TestB32_*"}},
	"B33": {"The hosts that a credential may go to stand in its owner's own file, which no workshop can change. The guard verifies the host's certificate, and adds the credential only to requests that the line has, once its owner agreed to the line. An upstream proxy's goes to that proxy alone, which speaks no TLS.",
		"A workshop.yaml that names your credential for evil.example is refused with 4.",
		[]string{"internal/broker: TestOnlyAllowed", "internal/guard: TestB33_*", "e2e: TestB32_Credential"}},
	"B34": {"What two programs could read in two ways is refused. What was checked is sent, byte by byte.",
		"`GET /repos/acme/../../user` at an endpoint for /repos/acme/** is answered with 400, and no packet leaves.", nil},
	"B35": {"A worker's own credentials, other hosts, redirects, upgrades and headers that mean another request are refused or not followed.",
		"A request with an Authorization of its own at an endpoint with a credential is refused, and says why.",
		[]string{"internal/guard: TestB33_*", "internal/guard: TestB45_*"}},
	"B36": {"A guard has a value for 30 seconds, unless it is leased again. Then, and at once after `workshop credential revoke`, its endpoints answer 503, and nothing is connected to through an upstream proxy that has one; nothing goes out without it, in another way or with an older one.",
		"After the process that leases is killed, `curl $WORKSHOP_ENDPOINT_API` gets 503 within 30 seconds.",
		[]string{"internal/guard: TestB32_WithoutALease", "e2e: TestB36_*"}},
	"B40": {"A worker can have less than its workshop grants, never more. A worker that another delegates to can't do more than that one.",
		"`resources: {memory: 4G}` in a worker is an error where the workshop has 2G.", nil},
	"B41": {"A tool that a worker's file doesn't list is not offered to a model, and not executed if it is called anyway. A limit such as `Bash(git:*)` holds for the command, not for what that program runs.",
		"`allowed-tools: Read`: a call of `shell` is refused, on the host and in the worker.", nil},
	"B42": {"A call for which the file asks approval runs only after a person said yes. With nobody to ask, it is refused. Code that already runs in a worker needs no approval.",
		"`approvals: {default: ask}` in continuous integration: the call is refused.", nil},
	"B43": {"Nothing in a workshop.yaml or a worker's file executes on the host.",
		"A repository that you only started with `up` ran nothing outside of its workers and the builds of their images.", nil},
	"B44": {"API keys of models stay outside of workers, unless the file passes a key on (B45). Calls to models leave a worker only where a line with a credential says so; no budget of a run binds those.",
		"`env` in a worker shows no key of yours that the file doesn't name.", nil},
	"B45": {"Values of your environment enter a worker only where the file shows it, by `secrets:` or `${NAME}`; the name for commits by `git_author: host`.",
		"GITHUB_TOKEN is not in a worker, unless workshop.yaml names it.", nil},
	"B46": {"With a workshop.lock images run by the digests that it has, and with `--frozen`, the default in continuous integration, nothing starts that differs from it in a file, an image, a build or a grant.",
		"A tag that was moved to another image changes nothing until somebody runs `workshop lock --upgrade`, which the lock's diff shows.", nil},
	"B47": {"What `extends` and `imports` take over is fetched only from sources that you or your settings agreed to, and used only as workshop.lock has it. A project narrows its base; an imported worker has what its file needs of what `grant` says, and reads no variable, path or secret of the machine by itself.",
		"An import that suddenly needs `evil.example` stops `up` with 4 and the lines that would grant it.", nil},
	"B60": {"No file, message or packet makes our programs crash, hang or use memory without bound, and a worker can't stop the guard. It can use up what the kernel counts per user: until it ends, commands of yours may fail.",
		"A workshop.yaml of nested aliases is refused with too-large.", nil},
}
