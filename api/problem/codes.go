package problem

// Code names a kind of problem. Codes are part of the interface: scripts
// match on them, so a code is never renamed or given another meaning.
type Code string

// Reading: the file is not what it should be.
const (
	// Syntax: the file is not YAML, or not one document.
	Syntax Code = "syntax"
	// Template: the file has placeholders that a program or a person has yet to fill in.
	Template Code = "template"
	// Unreadable: the file could not be opened or is too large.
	Unreadable Code = "unreadable"
	// DuplicateKey: a mapping has the same key twice.
	DuplicateKey Code = "duplicate-key"
	// UnknownField: a VIPConfig has a field that does not exist, or an install-config one
	// that no installer has.
	UnknownField Code = "unknown-field"
	// WrongType: a list where text is expected, and so on.
	WrongType Code = "wrong-type"
	// WrongKind: apiVersion or kind is not one that vipgen reads.
	WrongKind Code = "wrong-kind"
	// MissingField: a field that must be there is not, or is empty.
	MissingField Code = "missing-field"
	// Deprecated spellings are read and translated.
	Deprecated Code = "deprecated"
	// ConflictingFields: two fields that cannot both be given, or disagree.
	ConflictingFields Code = "conflicting-fields"
)

// Values: a field holds something that cannot work.
const (
	// BadName: not a valid DNS name, label, or name of a thing.
	BadName Code = "bad-name"
	// BadAddress: not an IP address, or of a kind no VIP or host can have.
	BadAddress Code = "bad-address"
	// BadNetwork: not a network in CIDR notation.
	BadNetwork Code = "bad-network"
	// BadValue: not one of the values that the field takes, or out of range.
	BadValue Code = "bad-value"
	// BadImage: not a container image reference.
	BadImage Code = "bad-image"
	// BadTiming: an interval that VRRP cannot carry.
	BadTiming Code = "bad-timing"
)

// Meaning: valid fields that do not fit together.
const (
	// CloudPlatform: the platform brings its own load balancer.
	CloudPlatform Code = "cloud-platform"
	// NoVIPs: the input names no VIPs and vipgen needs them.
	NoVIPs Code = "no-vips"
	// VIPOutsideNetwork: a VIP in none of the machine networks.
	VIPOutsideNetwork Code = "vip-outside-network"
	// NetworksOverlap: two networks of the cluster share addresses.
	NetworksOverlap Code = "networks-overlap"
	// RendezvousVIP: nothing holds the API VIP on the host that bootstraps an
	// agent-based or assisted installation.
	RendezvousVIP Code = "rendezvous-vip"
	// VIPTaken: a VIP that is another VIP, or the address of a host.
	VIPTaken Code = "vip-taken"
	// FamilyOrder: networks or VIPs whose address families do not match.
	FamilyOrder Code = "family-order"
	// RouterIDTaken: two VRRP instances with one virtual router ID.
	RouterIDTaken Code = "router-id-taken"
	// PortTaken: two services on one port of a node.
	PortTaken Code = "port-taken"
	// Topology: numbers of nodes that make no supported cluster.
	Topology Code = "topology"
	// UnsupportedVersion: an OpenShift version that vipgen does not know.
	UnsupportedVersion Code = "unsupported-version"
	// NeedsVersion: a feature that the chosen OpenShift version lacks, or has as a preview.
	NeedsVersion Code = "needs-version"
	// Shadowed: another owner's MachineConfig replaces a file of vipgen's.
	Shadowed Code = "shadowed"
	// UnknownOperatorFile: the machine-config operator lays a file on nodes that the operator
	// contract does not list.
	UnknownOperatorFile Code = "unknown-operator-file"
	// OtherRelease: images of another release than the cluster's.
	OtherRelease Code = "other-release"
	// DefaultImage: the agent's image is vipgen's default, which no registry has.
	DefaultImage Code = "default-image"
	// UnpinnedImage: an image named by tag where mirrors work by digest only.
	UnpinnedImage Code = "unpinned-image"
)
