package v1alpha1

import _ "embed"

// VIPConfigSchema is the JSON Schema of a VIPConfig. It is generated from the
// Go types and their comments: `go test ./api/v1alpha1 -run Schema -update`.
//
//go:embed vipconfig.schema.json
var VIPConfigSchema []byte
