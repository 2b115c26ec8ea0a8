package compose

import "github.com/compose-spec/compose-go/v2/types"

// labels are for people and for ps. Nothing is decided by a label: what a
// service is, Compiled.Roles says.
func (c *compiler) labels(role Role) types.Labels {
	return types.Labels{LabelRole: role.String(), LabelWorkshop: c.w.Name.V}
}
