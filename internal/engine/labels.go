package engine

// Compose's own labels, by which its programs recognise a project's objects
// (docker/compose pkg/api/labels.go).
const (
	LabelProject     = "com.docker.compose.project"
	LabelService     = "com.docker.compose.service"
	LabelComposeHash = "com.docker.compose.config-hash"
	LabelNumber      = "com.docker.compose.container-number"
	LabelOneOff      = "com.docker.compose.oneoff"
	LabelVersion     = "com.docker.compose.version"
	LabelWorkingDir  = "com.docker.compose.project.working_dir"
	LabelConfigFiles = "com.docker.compose.project.config_files"
	LabelDependsOn   = "com.docker.compose.depends_on"
	LabelImage       = "com.docker.compose.image"
	LabelNetwork     = "com.docker.compose.network"
	LabelVolume      = "com.docker.compose.volume"
)

// LabelNotHeld has the promises that the user waived when a container was created,
// separated by commas ([Container.NotHeld]).
const LabelNotHeld = "dev.llmdo.workshop.not-held"

// LabelHelper marks containers by which volumes are filled.
const LabelHelper = "dev.llmdo.workshop.helper"
