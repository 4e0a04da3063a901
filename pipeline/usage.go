package pipeline

import "fmt"

// Cost is what the calls cost, for people: "$1.25", "cost unknown" where no call's
// model has a price, "$1.25 + cost unknown" where some have none.
func (u Usage) Cost() string {
	switch known := fmt.Sprintf("$%.2f", float64(u.MicroUSD)/1e6); {
	case u.Unpriced == 0:
		return known
	case u.MicroUSD == 0:
		return "cost unknown"
	default:
		return known + " + cost unknown"
	}
}
