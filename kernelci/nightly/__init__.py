"""What happens at night: the whole ladder, remembered, compared with the nights before, shown, and said once."""

BRANCH = "kernelci-history"
