"""Links and banks, of any calibration.

In: calibrations. Out: links and banks.
"""

from discreet.api.opening import opens
from discreet.scales import bank, linking

link_calibrations = opens(linking.link_calibrations)
create_bank = opens(bank.create_bank)
grow_bank = opens(bank.grow_bank)
