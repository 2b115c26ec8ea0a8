package initimage

// BuildTags are the build tags of workshop-init: it speaks HTTP/1.1 only.
const BuildTags = "nethttpomithttp2"

// BuildFlags are the flags with which workshop-init is built, everywhere the same.
func BuildFlags() []string {
	return []string{"-trimpath", "-buildvcs=false", "-tags", BuildTags, "-ldflags", "-s -w"}
}
