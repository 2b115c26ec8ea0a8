package workshop

import (
	"reflect"
	"strings"
)

// instead says why a key of Compose isn't taken and what to write.
type instead struct{ why, hint string }

const (
	whyClosed   = "The boundary of a worker can't be opened from the file."
	whyOneKind  = "A workshop has workers in place of services."
	whyOurs     = "This is the same for every worker and can't be set."
	hintRemove  = "remove the key"
	whyWorkshop = "This key belongs to the workshop, not to a container."
	whyMounts   = "Unlike in Compose, a mount is read-only unless it ends in :rw. There are no named volumes: NAME becomes the directory ./NAME."
)

// containerKeys are keys of a Compose service that people try in
// `container:`.
var containerKeys = map[string]instead{
	"privileged":          {whyClosed, hintRemove},
	"cap_add":             {whyClosed + " All capabilities are dropped (B1).", hintRemove},
	"cap_drop":            {"All capabilities are dropped already (B1).", hintRemove},
	"security_opt":        {"no-new-privileges and a seccomp profile are always set (B2).", hintRemove},
	"devices":             {whyClosed + " Workers have no devices (B6).", hintRemove},
	"device_cgroup_rules": {whyClosed, hintRemove},
	"gpus":                {"Workers have no devices (B6).", hintRemove},
	"pid":                 {whyClosed + " Workers have no namespace of the host (B6).", hintRemove},
	"ipc":                 {whyClosed + " Workers have no namespace of the host (B6).", hintRemove},
	"uts":                 {whyClosed + " Workers have no namespace of the host (B6).", hintRemove},
	"userns_mode":         {whyClosed, hintRemove},
	"cgroup":              {whyClosed, hintRemove},
	"cgroup_parent":       {whyClosed, hintRemove},
	"group_add":           {"A worker has one user and one group.", `write user: "uid:gid"`},
	"network_mode":        {"Workers are in no network of the engine.", "write network: {mode: restricted, allow: [api.github.com]}, or network: none"},
	"networks":            {"Workers are in no network of the engine.", "write network: {mode: restricted, allow: [api.github.com]}, or network: none"},
	"dns":                 {"", "write it in network: {mode: restricted, dns: [ADDRESS]}"},
	"dns_search":          {whyOurs, hintRemove},
	"dns_opt":             {whyOurs, hintRemove},
	"extra_hosts":         {"The guard looks names up; the file can't give them addresses.", "write network: {mode: restricted, allow: [{cidr: ADDRESS/32, port: PORT}]} and connect to the address"},
	"hostname":            {whyOurs, hintRemove},
	"domainname":          {whyOurs, hintRemove},
	"mac_address":         {whyOurs, hintRemove},
	"sysctls":             {whyClosed, hintRemove},
	"expose":              {"", portsHint},
	"links":               {"", "remove the key: workers of one room (a network namespace) reach each other on 127.0.0.1"},
	"volumes":             {whyMounts, mountsHint},
	"volumes_from":        {whyMounts, mountsHint},
	"git":                 {"It is a key of a mount.", "write mounts: [{source: ., target: /workspace, mode: rw, git: rw}]"},
	"tmpfs":               {"", "write scratch: 256M (at /scratch), or tmp, shm, home"},
	"shm_size":            {"", "write shm: 64M"},
	"read_only":           {"The root file system is always read-only (B3).", hintRemove},
	"environment":         {"", "write env: {NAME: value}"},
	"env_file":            {"", "write env: {NAME: \"${NAME}\"}; variables come from .env and --env-file"},
	"working_dir":         {"", "write workdir: /workspace"},
	"pull_policy":         {"", "write pull: missing, or never, or always"},
	"platform":            {"The engine's own platform is used.", hintRemove},
	"entrypoint":          {"The image's entrypoint and command aren't run: PID 1 of a worker is workshop-init (B12).", hintRemove},
	"command":             {"The image's entrypoint and command aren't run: PID 1 of a worker is workshop-init (B12).", hintExec},
	"init":                {"PID 1 of a worker is workshop-init, which reaps (B12).", hintRemove},
	"healthcheck":         {whyOurs, hintRemove},
	"restart":             {whyOurs, hintRemove},
	"depends_on":          {"Workers start together and don't wait for each other.", hintRemove},
	"deploy":              {"", "write resources: {memory: 2G, cpu: 1}"},
	"memory":              {"", "write resources: {memory: 2G}"},
	"mem_limit":           {"", "write resources: {memory: 2G}"},
	"memswap_limit":       {"There is no swap beyond memory (B5).", hintRemove},
	"mem_reservation":     {"", "write resources: {memory: 2G}"},
	"cpu":                 {"", "write resources: {cpu: 1}"},
	"cpus":                {"", "write resources: {cpu: 1}"},
	"cpu_shares":          {"", "write resources: {cpu: 1}"},
	"cpu_quota":           {"", "write resources: {cpu: 1}"},
	"pids":                {"", "write resources: {pids: 256}"},
	"pids_limit":          {"", "write resources: {pids: 256}"},
	"timeout":             {"", "write resources: {timeout: 10m}"},
	"ulimits":             {whyOurs, hintRemove},
	"oom_kill_disable":    {whyClosed, hintRemove},
	"oom_score_adj":       {whyClosed, hintRemove},
	"logging":             {whyOurs, hintRemove},
	"labels":              {whyOurs, hintRemove},
	"container_name":      {"Names are made of the workshop's and the worker's.", hintRemove},
	"stdin_open":          {whyOurs, hintRemove},
	"tty":                 {"", "remove the key; `workshop shell WORKER` opens a terminal"},
	"stop_signal":         {whyOurs, hintRemove},
	"stop_grace_period":   {whyOurs, hintRemove},
	"profiles":            {"", "remove the key; `workshop up WORKER…` starts some workers only"},
	"scale":               {"", "list each worker by name"},
	"extends":             {whyOneKind, "write the keys out"},
	"configs":             {"", "write mounts: [./config:/workspace/config:ro]"},
	"isolation":           {whyWorkshop, "write isolation next to container"},
	"name":                {whyWorkshop, "write name next to container"},
	"allow":               {"", "write network: {mode: restricted, allow: […]}"},
	"deny":                {"", "write network: {mode: restricted, deny: […]}"},
	"tools":               {"What a worker is offered is not where it runs.", "write tools next to container in the worker's item, or `allowed-tools` in its file"},
	"workers":             {whyWorkshop, "write workers next to container"},
	"approvals":           {whyWorkshop, "write approvals next to container"},
	"mcp":                 {whyWorkshop, "write mcp next to container"},

	// devcontainer.json
	"features":          {"A worker's image is complete; nothing is installed at its start.", "install it in a Dockerfile: build: {context: ./docker/worker}"},
	"forwardPorts":      {"", portsHint},
	"appPort":           {"", portsHint},
	"postCreateCommand": {whyNoHook, hintExec},
	"postStartCommand":  {whyNoHook, hintExec},
	"onCreateCommand":   {whyNoHook, hintExec},
	"initializeCommand": {"Nothing in the file runs on the host.", hintExec},
	"remoteUser":        {"", `write user: "1000:1000"`},
	"containerUser":     {"", `write user: "1000:1000"`},
	"containerEnv":      {"", "write env: {NAME: value}"},
	"remoteEnv":         {"", "write env: {NAME: value}"},
	"runArgs":           {whyClosed, hintRemove},
	"capAdd":            {whyClosed + " All capabilities are dropped (B1).", hintRemove},
	"securityOpt":       {"no-new-privileges and a seccomp profile are always set (B2).", hintRemove},
	"workspaceFolder":   {"", "write workdir: /workspace"},
	"workspaceMount":    {whyMounts, mountsHint},
	"hostRequirements":  {"", "write resources: {memory: 2G, cpu: 1}"},
	"customizations":    {"It is about an editor.", hintRemove},

	// GitHub Actions
	"runs-on":           {"", "write image: NAME:TAG"},
	"steps":             {whyNoHook, hintExec},
	"run":               {whyNoHook, hintExec},
	"uses":              {whyNoHook, hintExec},
	"options":           {whyClosed, "write the limits as resources: {memory: 2G, cpu: 1}"},
	"credentials":       {"The engine's own log-in is used.", "run `docker login`"},
	"cache":             {"", "write caches: [npm]"},
	"permissions":       {"A worker has no token unless it is a secret.", "write secrets: [{name: github_token, env: GITHUB_TOKEN}]"},
	"timeout-minutes":   {"", "write resources: {timeout: 10m}"},
	"working-directory": {"", "write workdir: /workspace"},
}

// InsteadOf returns why a key of a Compose service or of a devcontainer.json is not a key
// of a container, and what to write; ok is false for a key that isn't known.
func InsteadOf(key string) (why, hint string, ok bool) {
	x, ok := containerKeys[key]
	if x.hint == hintRemove {
		x.hint = "leave it out"
	}
	return x.why, x.hint, ok
}

const (
	portsHint  = "write ports: [\"8080:8080\"]"
	mountsHint = "write mounts: [./src:/workspace/src:ro]"
	hintExec   = "run commands with `workshop exec WORKER -- COMMAND`"
	whyNoHook  = "A workshop starts no command of its own."
)

// renamed are keys of containerKeys whose value a key of ours takes as it is, so
// that the hint has the line to write.
var renamed = map[string]string{
	"environment": "env", "containerEnv": "env", "remoteEnv": "env",
	"volumes": "mounts", "workspaceMount": "mounts",
	"working_dir": "workdir", "workspaceFolder": "workdir", "working-directory": "workdir",
	"cache": "caches", "forwardPorts": "ports", "appPort": "ports", "expose": "ports",
	"shm_size": "shm", "pull_policy": "pull", "deploy": "resources", "hostRequirements": "resources",
	"remoteUser": "user", "containerUser": "user",
	"mem_limit": "resources.memory", "memory": "resources.memory", "mem_reservation": "resources.memory",
	"cpus": "resources.cpu", "cpu": "resources.cpu",
	"pids_limit": "resources.pids", "pids": "resources.pids", "timeout": "resources.timeout",
}

// renamedKey is the key of ours that takes the value of another program's.
func renamedKey(f *form, key string) string {
	switch f {
	case formOf(reflect.TypeFor[partialContainer]()):
		return renamed[key]
	case formOf(reflect.TypeFor[partialResources]()):
		return limitKeys[key]
	case formOf(reflect.TypeFor[mountForm]()):
		return mountKeysMeant[key]
	case formOf(reflect.TypeFor[secretForm]()):
		return map[string]string{"environment": "env"}[key]
	}
	return ""
}

// renamedHint is the key of ours that was meant, with the line to write; the hint is
// empty where there is none, or where the value isn't valid here.
func (d *decoder) renamedHint(p pair, f *form) (ours, hint string) {
	ours = renamedKey(f, p.key.text)
	limits := formOf(reflect.TypeFor[partialResources]())
	if f == limits && p.key.text == "limits" {
		if pairs := inBraces(d.src.limitPairs(p.value)); pairs != "" {
			return "", "write resources: " + pairs
		}
	}
	if f == formOf(reflect.TypeFor[mountForm]()) && (p.key.text == "read_only" || p.key.text == "readonly") {
		return "", "write mode: " + map[bool]string{true: "ro", false: "rw"}[p.value.text == "true"]
	}
	below, inside := strings.CutPrefix(ours, "resources.")
	if inside {
		f, ours = limits, ""
	}
	target := f.byKey[below]
	if target == nil {
		return "", ""
	}
	meant := d.meant(p.value, target)
	switch {
	case meant == target:
		return ours, ""
	case inside:
		return ours, "write resources: {" + strings.TrimPrefix(meant.example, "write ") + "}"
	}
	return ours, meant.example
}

// documentKeys are keys that people try at the top of the file.
var documentKeys = map[string]instead{
	"services": {whyOneKind, "write workshop: {name: …, container: {…}, workers: […]}"},
	"volumes":  {"There are no named volumes.", "write mounts in workshop.container"},
	"networks": {"", "write network in workshop.container"},
	"secrets":  {"", "write secrets in workshop.container"},
	"configs":  {"", "write mounts in workshop.container"},
	"include":  {"A workshop is one file.", hintRemove},
	"models":   {"LLM calls stay on the host (B44).", "write a server of this machine as workshop: {models: {services: {NAME: {image: …, file: NAME.gguf, sha256: …}}}}, or remove the key"},
	"version":  {"The file has no version of its format; workshop.version is the workshop's own.", "remove the key"},
}

// workshopKeys are keys that people try in `workshop:`.
var workshopKeys = map[string]instead{
	"services": {whyOneKind, "write workers: [NAME]"},
	"agents":   {"", "write workers: [NAME]"},
	"volumes":  {"", "write container: {mounts: […]}"},
	"networks": {"", "write container: {network: …}"},
	"model":    {"LLM calls stay on the host (B44).", "write `model` in the worker's file"},
	"toolsets": {"A worker's own file lists its tools.", "write `allowed-tools` in the worker's file"},
	"sandbox":  {"", "write container"},

	"engine":      {"", "write isolation: docker, namespace or auto"},
	"mcpServers":  {"", "write mcp: {NAME: {command: PROGRAM}}"},
	"mcp_servers": {"", "write mcp: {NAME: {command: PROGRAM}}"},
}

// resourceKeys are keys that people try in `resources:`.
var resourceKeys = map[string]instead{
	"limits":       {"A limit is written directly below resources.", "write resources: {memory: 2G, cpu: 1}"},
	"reservations": {"Nothing is reserved.", hintRemove},
	"requests":     {"Nothing is reserved.", hintRemove},
	"mem":          {"", "write memory: 2G"},
	"mem_limit":    {"", "write memory: 2G"},
	"ram":          {"", "write memory: 2G"},
	"cpus":         {"", "write cpu: 1"},
	"pids_limit":   {"", "write pids: 256"},
	"time":         {"", "write timeout: 10m"},
	"gpu":          {"Workers have no devices (B6).", hintRemove},
	"gpus":         {"Workers have no devices (B6).", hintRemove},
	"devices":      {"Workers have no devices (B6).", hintRemove},
	"disk":         {"A mount has no quota; memory file systems have a size.", "write scratch: 256M in container"},
	"storage":      {"A mount has no quota; memory file systems have a size.", "write scratch: 256M in container"},
}

// secretKeys are keys that people try in a secret.
var secretKeys = map[string]instead{
	"environment": {"", "write env: VARIABLE"},
	"value":       {"A file that is committed has no secrets (B11).", "set a variable of the host and write env: VARIABLE"},
	"external":    {"", "write env: VARIABLE or file: ./FILE"},
	"source":      {"", "write name: NAME"},
	"target":      {"It is the file /run/secrets/NAME.", hintRemove},
}

// hinted looks a key up in the table that fits the form.
func hinted(f *form, key string) (instead, bool) {
	switch f {
	case formOf(reflect.TypeFor[partialContainer]()):
		x, ok := containerKeys[key]
		return x, ok
	case formOf(reflect.TypeFor[document]()):
		x, ok := documentKeys[key]
		if _, inside := formOf(reflect.TypeFor[workshopForm]()).byKey[key]; inside && !ok {
			return instead{"", "indent it below `workshop:`"}, true
		}
		if _, inside := formOf(reflect.TypeFor[partialContainer]()).byKey[key]; inside && !ok {
			return instead{"", "indent it below `container:` of the workshop"}, true
		}
		return x, ok
	case formOf(reflect.TypeFor[workshopForm]()):
		if _, inside := formOf(reflect.TypeFor[partialContainer]()).byKey[key]; inside {
			return instead{"", "write it in container"}, true
		}
		if x, ok := workshopKeys[key]; ok {
			return x, true
		}
		x, ok := containerKeys[key]
		return x, ok
	case formOf(reflect.TypeFor[networkForm]()):
		x, ok := networkKeys[key]
		if _, inside := formOf(reflect.TypeFor[partialContainer]()).byKey[key]; inside && !ok {
			return instead{"", "it is a key of container: indent it like `network:`"}, true
		}
		return x, ok
	case formOf(reflect.TypeFor[ruleForm]()):
		x, ok := ruleKeys[key]
		return x, ok
	case formOf(reflect.TypeFor[gitForm]()):
		x, ok := gitKeys[key]
		return x, ok
	case formOf(reflect.TypeFor[agentForm]()):
		x, ok := agentKeys[key]
		return x, ok
	case formOf(reflect.TypeFor[mountForm]()):
		x, ok := mountKeys[key]
		return x, ok
	case formOf(reflect.TypeFor[portForm]()):
		x, ok := portKeys[key]
		return x, ok
	case formOf(reflect.TypeFor[workerForm]()):
		if _, inside := formOf(reflect.TypeFor[partialContainer]()).byKey[key]; inside {
			return instead{"", "write it in the worker's container"}, true
		}
		x, ok := workerKeys[key]
		return x, ok
	case formOf(reflect.TypeFor[partialResources]()):
		x, ok := resourceKeys[key]
		if _, inside := formOf(reflect.TypeFor[partialContainer]()).byKey[key]; inside && !ok {
			return instead{"", "it is a key of container: indent it like `resources:`"}, true
		}
		return x, ok
	case formOf(reflect.TypeFor[secretForm]()):
		x, ok := secretKeys[key]
		return x, ok
	case formOf(reflect.TypeFor[cacheForm]()):
		x, ok := cacheKeys[key]
		return x, ok
	case formOf(reflect.TypeFor[mcpForm]()):
		x, ok := mcpKeys[key]
		return x, ok
	}
	return instead{}, false
}
