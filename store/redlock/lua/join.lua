
-- ARGV replica, session ms, start (1 or 0), info
-- Returns {granted, ..., ms} or {ended, ...}.

local err = check()
if err then
  return err
end
local us = now_us()
local ms = math.floor(us / 1000)
local living = session_end(sessions, ARGV[1], ms)
if ARGV[3] ~= '1' and not living then
  return answer('ended', us)
end
local till = math.max(living or 0, ms + tonumber(ARGV[2]))
set_session(sessions, info, ARGV[1], till, ARGV[4], ms)
return answer('granted', us, whole(till - ms))
