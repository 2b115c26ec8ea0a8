package workshop

import "reflect"

// instead says why a key of Compose isn't taken and what to write.
type instead struct{ why, hint string }

const (
	whyClosed   = "The boundary of a worker can't be opened from the file."
	whyOneKind  = "A workshop has workers in place of services."
	whyOurs     = "This is the same for every worker and can't be set."
	hintRemove  = "remove the key"
	whyWorkshop = "This key belongs to the workshop, not to a container."
)

// containerKeys are keys of a Compose service that people try in
// `container:`.
var containerKeys = map[string]instead{
	"privileged":          {whyClosed, hintRemove},
	"cap_add":             {whyClosed + " All capabilities are dropped (B1).", hintRemove},
	"cap_drop":            {"All capabilities are dropped already (B1).", hintRemove},
	"security_opt":        {"no-new-privileges and our seccomp profile are always set (B2).", hintRemove},
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
	"network_mode":        {"", "write network: none, restricted or open"},
	"networks":            {"", "write network: none, restricted or open"},
	"dns":                 {"", "write it in network: {mode: restricted, dns: [ADDRESS]}"},
	"dns_search":          {whyOurs, hintRemove},
	"dns_opt":             {whyOurs, hintRemove},
	"extra_hosts":         {whyOurs, "allow the name in network.allow"},
	"hostname":            {whyOurs, hintRemove},
	"domainname":          {whyOurs, hintRemove},
	"mac_address":         {whyOurs, hintRemove},
	"sysctls":             {whyClosed, hintRemove},
	"expose":              {"", "write ports"},
	"links":               {"", "workers of one room reach each other on 127.0.0.1"},
	"volumes":             {"", "write mounts: [./src:/workspace/src:ro]"},
	"volumes_from":        {"", "write mounts: [./src:/workspace/src:ro]"},
	"tmpfs":               {"", "write scratch: 256M (at /scratch), or tmp, shm, home"},
	"shm_size":            {"", "write shm: 64M"},
	"read_only":           {"The root file system is always read-only (B3).", hintRemove},
	"environment":         {"", "write env: {NAME: value}"},
	"env_file":            {"", "write env: {NAME: \"${NAME}\"}; variables come from .env and --env-file"},
	"working_dir":         {"", "write workdir: /workspace"},
	"pull_policy":         {"", "write pull: missing, never or always"},
	"platform":            {"The engine's own platform is used.", hintRemove},
	"entrypoint":          {"The image's program isn't run: a worker's first process is ours (B12).", hintRemove},
	"command":             {"The image's program isn't run: a worker's first process is ours (B12).", "run commands with `workshop exec WORKER -- COMMAND`"},
	"init":                {"A worker's first process is ours and reaps (B12).", hintRemove},
	"healthcheck":         {whyOurs, hintRemove},
	"restart":             {whyOurs, hintRemove},
	"depends_on":          {whyOurs, "workers name each other in `delegates-to` of their files"},
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
	"tty":                 {"", "`workshop shell WORKER` opens a terminal"},
	"stop_signal":         {whyOurs, hintRemove},
	"stop_grace_period":   {whyOurs, hintRemove},
	"profiles":            {"", "`workshop up WORKER…` starts some workers only"},
	"scale":               {"", "list each worker by name"},
	"extends":             {whyOneKind, "write the keys out"},
	"configs":             {"", "write mounts: [./config:/workspace/config:ro]"},
	"isolation":           {whyWorkshop, "write isolation next to container"},
	"name":                {whyWorkshop, "write name next to container"},
	"allow":               {"", "write network: {mode: restricted, allow: […]}"},
	"deny":                {"", "write network: {mode: restricted, deny: […]}"},
	"tools":               {"A worker's own file lists its tools.", "write `allowed-tools` in the worker's file"},
}

// documentKeys are keys that people try at the top of the file.
var documentKeys = map[string]instead{
	"services": {whyOneKind, "write workshop: {name: …, container: {…}, workers: […]}"},
	"volumes":  {"", "write mounts in workshop.container"},
	"networks": {"", "write network in workshop.container"},
	"secrets":  {"", "write secrets in workshop.container"},
	"configs":  {"", "write mounts in workshop.container"},
	"include":  {"A workshop is one file.", hintRemove},
	"models":   {"LLM calls stay on the host (B44).", hintRemove},
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
		return x, ok
	case formOf(reflect.TypeFor[ruleForm]()):
		x, ok := ruleKeys[key]
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
	case formOf(reflect.TypeFor[mcpForm]()):
		x, ok := mcpKeys[key]
		return x, ok
	}
	return instead{}, false
}
