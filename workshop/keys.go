package workshop

import "strings"

// SchemaKeys are the keys of workshop.yaml by their paths, such as
// "container.network.mode", in the order of the reference.
func SchemaKeys() (keys []string) {
	for _, s := range sections {
		for at := range strings.SplitSeq(s.path, ", ") {
			for _, f := range formOf(s.form).fields {
				keys = append(keys, at+"."+f.keyName)
			}
		}
	}
	return keys
}
