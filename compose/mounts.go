package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// mounts adds the mounts of the file: binds, read-only unless the file says
// otherwise, and volumes for those that are a copy (B9).
func (c *compiler) mounts(s *types.ServiceConfig, k *workshop.Container) {
	for i := range k.Mounts {
		m := &k.Mounts[i]
		at := "volumes." + m.Target.V
		c.origin(s.Name, at, m.At)
		c.origin(s.Name, at+".target", m.Target.Source)
		if m.IsCopy() {
			key := copyVolume(m)
			c.out.Copies[key] = Copy{Source: m.Source.V, Exclude: m.Exclude}
			c.out.Project.Volumes[key] = types.VolumeConfig{}
			s.Volumes = append(s.Volumes, volume(key, m.Target.V))
			continue
		}
		s.Volumes = append(s.Volumes, bind(generatedPath(m.Source.V), m.Target.V, !m.ReadWrite))
		c.origin(s.Name, at+".source", pathSource(m.Source.V, m.Source.Source))
	}
}

// copyVolume names the volume of a copy by what goes into it, so that workers
// with the same copy share one and a changed list of excludes never finds the
// old content.
func copyVolume(m *workshop.Mount) string {
	h := sha256.New()
	h.Write([]byte(templateOf(m.Source.V, m.Source.Source)))
	for _, e := range m.Exclude {
		h.Write([]byte("\x00" + e))
	}
	return "copy-" + hex.EncodeToString(h.Sum(nil)[:6])
}

// bind mounts a directory or file of the machine. The source must exist, and
// what is mounted below it stays outside (B7).
func bind(source, target string, readOnly bool) types.ServiceVolumeConfig {
	return types.ServiceVolumeConfig{
		Type: types.VolumeTypeBind, Source: source, Target: target, ReadOnly: readOnly,
		Bind: &types.ServiceVolumeBind{Recursive: "disabled"},
	}
}

// volume mounts a volume read-only. It is never filled from the image.
func volume(key, target string) types.ServiceVolumeConfig {
	return types.ServiceVolumeConfig{
		Type: types.VolumeTypeVolume, Source: key, Target: target, ReadOnly: true,
		Volume: &types.ServiceVolumeVolume{NoCopy: true},
	}
}

func toolsMount() types.ServiceVolumeConfig { return volume(ToolsVolume, InitDir) }

// socketsMount is the fence between rooms and everything else: it is mounted
// in rooms, which make their socket there, and in the guard, which connects to
// them and needs no right to write for it.
func socketsMount(readOnly bool) types.ServiceVolumeConfig {
	v := volume(SocketsVolume, SocketDir)
	v.ReadOnly = readOnly
	return v
}

// toolsName is the name of the tool volume before the machine gave it. The
// second file of plain Compose replaces it: the first one alone stops with the
// hint, or, with the variables but without the second file, at a volume that
// does not exist.
const toolsName = "${" + VarFacts + ":?" + loadHint + "}"

// toolsVolume exists before the project and outlives it.
func (c *compiler) toolsVolume() {
	c.out.Project.Volumes[ToolsVolume] = types.VolumeConfig{Name: toolsName, External: true}
	c.out.Origins["volumes."+ToolsVolume+".name"] = diag.Source{Template: toolsName}
}

// generatedPath is a path of workshop.yaml as seen from the generated
// directory, .workshop/NAME/.
func generatedPath(p string) string {
	if path.IsAbs(p) || strings.HasPrefix(p, "~") {
		return p
	}
	return path.Join("../..", p)
}

// pathSource is the same for a path with a variable.
func pathSource(p string, src diag.Source) diag.Source {
	if path.IsAbs(p) || strings.HasPrefix(p, "~") {
		return src
	}
	return around("../../", src, "")
}
