package migration

import (
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestInForce(t *testing.T) {
	fast := v1alpha1.VRRPSettings{Profile: "fast", Mode: "unicast", Version: 3, AdvertIntervalMS: v1alpha1.FastIntervalMS}
	slower, multicast := fast, fast
	slower.AdvertIntervalMS, multicast.Mode = 100, "multicast"
	virtual := v1alpha1.VRRP{Profile: v1alpha1.ProfileVirtual, Mode: v1alpha1.ModeUnicast}.Settings()
	longer := slower
	longer.AdvertIntervalMS = 3 * fast.AdvertIntervalMS
	classic := v1alpha1.ClassicSettings("unicast")
	tests := []struct {
		name        string
		target      v1alpha1.VRRPSettings
		start, kept *v1alpha1.VRRPSettings
		want        v1alpha1.VRRPSettings
	}{
		{"a new node", fast, nil, nil, fast},
		{"a new node beside the operator's bootstrap", fast, &classic, nil, classic},
		{"until the migration", fast, &classic, &classic, classic},
		{"after the migration", fast, &classic, &fast, fast},
		{"timing changes at once", slower, nil, &fast, slower},
		{"timing changes at once, after the migration", slower, &classic, &fast, slower},
		{"an interval of three times as much waits for the migration", longer, nil, &fast, fast},
		{"a third of it too", fast, nil, &longer, longer},
		{"re-rendered with the platform's profile", virtual, nil, &fast, fast},
		{"the same, of a cluster that began like the operator's", virtual, &classic, &fast, fast},
		{"back to fast", fast, nil, &virtual, virtual},
		{"the mode waits for the migration", multicast, nil, &fast, fast},
		{"the version waits for the migration", classic, nil, &fast, fast},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := InForce(v1alpha1.ClusterVRRP{Target: tt.target, Start: tt.start}, tt.kept)
			testkit.Equal(t, tt.want, got)
		})
	}
}
