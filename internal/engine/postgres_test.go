package engine

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"agentd/internal/store"
	"agentd/internal/store/postgres"
	"agentd/internal/store/postgres/pgtest"
	"agentd/internal/store/sqlite"
)

// harnessStore is the variable that has harnesses use a database: its value is a URL,
// in which SCHEMA stands for a schema of each one's own.
const harnessStore = "AGENTD_TEST_HARNESS_STORE"

// openStore opens the store of a harness: one in memory, or a schema of its own in a
// database.
func openStore(t *testing.T) (store.Store, error) {
	if url := os.Getenv(harnessStore); url != "" {
		return postgres.Open(t.Context(), strings.ReplaceAll(url, "SCHEMA", fmt.Sprint("harness", time.Now().UnixNano())), nil)
	}
	return sqlite.Open(sqlite.Memory, nil)
}

// What depends on the store, on PostgreSQL: sessions that nothing takes away, budgets,
// artifacts and crashes in the middle of them.
func TestEngineOnPostgres(t *testing.T) {
	c := pgtest.Start(t, "fsync = off") // it is the engine that crashes
	t.Run("CrashesWithACap", func(t *testing.T) {
		t.Setenv(harnessStore, c.NewURL()) // one for all: most of the time would be the making of tables
		TestCrashAtEveryCommitWithACap(t)
	})
	t.Setenv(harnessStore, c.URL("SCHEMA"))
	for name, test := range map[string]func(*testing.T){
		"ABadPicture":         TestABadPictureDoesNotBrickTheSession,
		"OldPictures":         TestOldPicturesThatNobodyTakesAreLeftOut,
		"APoisonedMessage":    TestAPoisonedMessageDoesNotBrickTheSession,
		"APoisonedResult":     TestAPoisonedResultDoesNotBrickTheSession,
		"AnOverflow":          TestAnOverflowDoesNotBrickTheSession,
		"DamagedEntries":      TestDamagedEntriesDoNotBrickTheSession,
		"AHole":               TestAHoleInTheConversationDoesNotBrickTheSession,
		"OrphanedCalls":       TestOrphanedCallsDoNotBrickTheSession,
		"BrokenText":          TestBrokenTextDoesNotBrickTheSession,
		"ADamagedRun":         TestADamagedRunDoesNotBrickTheSession,
		"DamagedEvents":       TestDamagedEventsDoNotHideTheRun,
		"Quarantine":          TestKillWhileSomethingIsQuarantined,
		"ManyArtifacts":       TestASessionDoesNotGatherArtifacts,
		"KilledSweeps":        TestKillWhileArtifactsAreSwept,
		"ReadOn":              TestModelsReadOnInLargeResults,
		"BudgetsOfTrees":      TestPeersHardBudgetsAcrossTreesAndTenants,
		"BudgetAsksForMore":   TestBudgetAsksForMore,
		"BudgetOfToolCalls":   TestBudgetToolCallsOfTheTree,
		"BudgetOfFailures":    TestBudgetOfFailedCalls,
		"BudgetOfCancelled":   TestBudgetOfCancelledRuns,
		"BudgetBelievesBills": TestBudgetBeliefsTheBill,
		"BudgetCloses":        TestBudgetClosesTheAnswer,
	} {
		t.Run(name, test)
	}
}
